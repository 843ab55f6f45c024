"""What tools are about: nouns, and words in front of them."""

from training.data.side import split
from training.data.words import common

NOUNS = split(
    """invoice order ticket booking meeting reminder playlist song album video photo folder file document report
    article chapter essay poem recipe meal menu table room hotel flight train bus ferry route trip journey map
    balance account payment refund loan salary budget tax price discount coupon voucher receipt contract
    server database backup log metric alert incident deployment release branch commit issue review test build
    container cluster node disk volume snapshot network firewall domain certificate password token session
    user profile team group role permission member guest visitor employee manager teacher student course lesson
    exam grade homework project task milestone goal habit workout exercise run diet calorie sleep step weight
    patient appointment prescription medicine dose symptom allergy doctor clinic vaccine
    lamp light switch heater fan oven fridge camera lock door window curtain alarm sensor battery printer scanner
    robot drone car truck bicycle scooter tyre engine fuel mileage toll garage
    plant seed crop harvest field tractor well pump tank pipe valve boiler
    book author publisher shelf museum painting sculpture concert festival theatre film actor director
    game match player score league season stadium referee
    stock share bond fund market currency rate trade portfolio asset
    message email letter note comment post channel chat call contact voicemail fax
    package parcel shipment delivery warehouse inventory supplier product catalogue brand
    planet star comet telescope rocket satellite orbit crater
    word phrase synonym definition sentence paragraph summary translation
    number equation formula matrix vector polynomial fraction angle distance area speed temperature pressure
    river lake mountain island bridge tunnel tower castle park garden street building
    pet dog horse rabbit parrot turtle fish whale bird bee
    survey poll vote election petition donation charity grant
    timer clock calendar holiday birthday wedding party""",
    held_out="""tram harbour lighthouse glacier violin orchestra ballet tapestry mosaic vineyard orchard greenhouse
    chandelier humidifier doorbell intercom elevator escalator turbine reactor pipeline refinery quarry
    passport visa permit licence citation subpoena mortgage pension dividend ledger payroll
    podcast episode trailer subtitle screenplay novel anthology dictionary glossary
    kennel aquarium hamster penguin falcon dolphin beetle
    marathon triathlon regatta tournament trophy medal coach
    latency throughput bandwidth checksum cipher webhook pipeline queue cron
    pharmacy bandage surgery pulse insulin
    kayak yacht helicopter submarine hovercraft monorail""",
    more=common.NOUNS,
)

MODIFIERS = split(
    """annual monthly weekly daily urgent private public shared digital local remote global internal external solar
    electric manual virtual mobile online offline primary secondary temporary permanent open closed active pending
    regional national foreign domestic medical legal financial technical musical historical scientific
    north south east west upper lower inner outer old new small large red green blue golden silver""",
    held_out="""quarterly biannual coastal alpine urban rural nocturnal seasonal archival maritime arctic tropical
    experimental provisional certified encrypted""",
    more=common.ADJECTIVES,
)

TOPICS = split(
    """the history of bread, deep sea diving, solar panels, ancient roads, paper boats, city gardens, winter sports,
    the moon landing, old maps, wild mushrooms, desert foxes, glass bottles, chess openings, river otters, copper mines,
    wooden toys, street lamps, stone bridges, sailing knots, mountain huts, honey bees, night trains, cheese making,
    folk dances, volcanoes, silk, windmills, tea, coral reefs, cave paintings, rubber boots, jazz pianos, fossils,
    long walks, public libraries, rain, coffee, umbrellas, bicycles, clouds, lost keys, spiders, snow""",
    held_out="""lighthouse keepers, polar expeditions, ceramic glazes, tidal power, medieval clocks, salt trade,
    origami, bonsai trees, subway maps, meteor showers, beekeeping in cities, hot air balloons, thunder, moss""",
)

UNITS = split(
    """metres kilometres miles feet inches litres gallons grams kilograms pounds ounces hours minutes seconds days
    weeks euros dollars yen watts volts degrees percent bytes pages pieces boxes cups""",
    held_out="fathoms leagues furlongs carats joules lumens hectares acres tonnes pints crowns rupees",
    more=common.SEVERAL,
)

OPTIONS = split(
    """low medium high, small medium large, red green blue, fast slow, north south east west, draft final,
    open closed pending, daily weekly monthly, pdf csv html, celsius fahrenheit kelvin, asc desc,
    economy business first,
    vegan vegetarian omnivore, cash card transfer, gold silver bronze, easy normal hard, json xml yaml, light dark auto,
    metric imperial, single double suite, sedan van truck, public private, soft hard, spring summer autumn winter,
    oak pine birch, sms email push, breakfast lunch dinner, new used refurbished, left right centre, am pm""",
    held_out="""mild moderate severe, cotton linen wool, standing seated, ascending descending, tin brass steel,
    mono stereo surround, hourly nightly, matte glossy, sunrise noon dusk, novice adept expert, ruby topaz opal,
    courier freight pickup, major minor patch""",
    more=common.CHOICES,
)
