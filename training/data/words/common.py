"""Common words, for training alone: so many that none of them is known by heart.

None is held out in any list (``check_split`` compares them), and those are left out whose hash is held out.
"""

from itertools import product
from string import ascii_uppercase

from training.data.side import Side, listed, side_of


def _of_training(text: str) -> tuple[str, ...]:
    return tuple(word for word in listed(text) if side_of(word) is Side.TRAIN)


NOUNS = _of_training(
    """ability absence accent accident accountant acorn actress adult advice affair afternoon agent agreement airport
    aisle algebra almond alphabet aluminium ambassador amber ambulance amendment ammonia analyst anatomy anchor
    anecdote angel anger ankle annex ant antenna anthem apology appetite apple appliance apprentice apron aptitude
    arch archer architect arena argument arithmetic arm army array arrow arsenic artefact artist ash assassin
    assembly astronomer asylum athlete atlas atmosphere atom attachment attempt attic attitude attribute audience
    auditor aunt autograph autumn avalanche award axe axis baby bachelor back bacon bacteria bag bait balcony ball
    ballot bamboo banana band bandit banker banner banquet baptism barber bark barn barometer barrel barrier basalt
    baseline basement basin basket bath bathroom battalion bay bazaar beach bead beak beam bean bear beard beauty
    beaver bed bedroom bedside beef beer beggar beginner behaviour belief belly belt bench benefit berry bestseller
    bias bibliography bill billboard bin biography biologist biscuit bishop bit bitumen blackout blacksmith blade
    blanket blaze blood bloom blueprint board boat bodyguard bone bonfire bonus bookmark bookseller boot border boss
    botanist bottle bottom boulder boundary bow bowl box boy brain brake bread break breakfast breakthrough breath
    breeze brick bride brochure bronze broom brother brush bubble bucket buckle bud buffalo bug builder bull bullet
    bulletin bundle burden bureau bush butcher butter butterfly button buyer bypass cabbage cabin cabinet cable
    cactus cadmium cage cake calcium calf calibration camel cameraman camp campaign canal candle candy cannon canoe
    canvas canyon cap cape capsule captain caravan carbon cardboard care career carpenter carpet carriage carrot
    cart cartoon cascade case cash cashier catalyst cattle cause cave cedar ceiling celery cellar cement census
    centre century cereal ceremony chain chair chalk chamber champion chance chancellor change chapel character
    charcoal charm chart chauffeur cheek cheese chef chemist cherry chest chicken chief child chimney chin chip
    chlorine chocolate choice choir chrome chronicle church cider cigar cinema circle circuit circus citizen clam
    claw clay cleaner clearance clerk cliff climate climb clipboard cloak cloth cloud clover clown clue coal
    coalition coast coat cobalt cobweb cocoa coconut coffin coil coin collar collector college collision colonel
    colony colour column comb comedian comedy comfort command commander commerce committee commodity common
    compartment compass complaint component composer compound comrade concept concession concrete condition conduct
    conductor cone confession confidence conflict congress connection consensus constant constraint consultant
    contest context control convict convoy cook cookie copper copy cord cork corn corner corridor cost costume
    cottage couch cough council counter country county couple courage court courtyard cousin cover coverage cow crab
    cradle craft crafter crane crayon cream creature credential creek crew cricket crime crisis criterion critic
    crocodile crossing crossroads crow crumb crust crystal cube cubicle cup cupboard curator cure curl current
    curriculum curve cushion custom cycle cyclist cylinder dad dairy daisy damage dance dancer danger dawn deal
    dealer death debate debris debt decade decimal decision deck decorator decree deer defence deficit degree delay
    delegate demand demolition denim density dentist deputy descent desert design designer desk destiny detail
    detective developer devil diagram dialect dialogue diamond diary dice dictator dilemma dimension dinner diplomat
    direction directory dirt disaster disc discipline discovery dish dispute district ditch diver divorce dock
    doctrine doll dolly donkey donor doorway dosage dot dough dove draft dragon drain drama drawback drawer drawing
    dream dress drill drink driver drop drought drum drummer duck duke dungeon dust duty eagle ear earth earthquake
    ebony echo eclipse economist edge editor effect effort egg elbow elder electrician element elephant elixir elm
    embargo embassy emblem emotion empire enamel encounter encyclopedia endeavour enemy energy engineer enigma
    enterprise entertainer entrance envelope envy epidemic equator equipment error escort essence estate estimate
    ethanol etiquette evening event evidence example exchange excuse exhibit exit expense explorer exponent export
    eye eyebrow fabric fabrication facade face facility faction factor factory failure fairy faith fall fame family
    fantasy farm farmer fashion fate father fault favour fear feast feather feature feedback feeling fence fern
    fever fiction fiesta fig fight fighter filament filing fin finger fire firefighter fireplace fisherman fist flag
    flame flap flash flashlight flavour flea fleece fleet flesh float flock flood florist flour flowchart flower
    fluctuation flute foam focus fog folklore food fool foot footage footnote force forecast forehead foreman forest
    fork formality fort fortune fountain fox fracture fragment frame framework freedom freezer friend fringe frog
    front frontier frost fruit fugitive fun funnel fur furniture future gadget galaxy gallery gallon gambler gang
    gap gardener gate gateway gear gelatine gem general gentleman geologist geometry ghost giant ginger giraffe girl
    glance glass glazier glimpse globe glove glow glue glycerine goat gold golf goose gorilla gospel gossip
    government governor gown grace gradient graffiti grain grammar grandfather granite grape graph graphite grass
    grave gravel gravity grease grey grip grocer grocery ground growth guard guess guide guideline guitar gulf gum
    gun gutter gym gymnast gypsum habitat hail hair hairdresser half hall halo hammer hand handbook handicap
    hardware harmony harness harp hat hatter hawk hay hazard head health heap heart heat heaven hedge heel height
    helium helmet help hemp hen herb herd hero herring hierarchy highway hill hinge hip historian hobby hole honey
    honorary honour hood hoof hook hope horizon horn horror hose hospital hostage hostess house human humour hunger
    hunter hurricane hut hydrogen hypothesis ice icon idea identity ideology idol illness illustrator image
    imagination impact import impulse incentive inch income increment index indicator industry infant inflation
    influence inheritance initiative injury ink inn inscription insect inside insight inspector installment instance
    instinct institution instructor insulation integer interface interior intersection interval interview inventor
    investor invitation iodine iron itinerary ivory ivy jacket jackpot jade jail jam jar jaw jazz jelly jet jewel
    jeweller job jockey joiner joint journal journalist joy judge jug juice junction jungle junior jurisdiction jury
    justice jute kerosene kettle keyboard keynote kick kid kidney kilobyte king kingdom kiosk kiss kitchen kite
    kitten knee knife knight knot knowledge laboratory labour lace lacquer ladder lady lamb landlord landmark
    landscape lantern lap latex lattice lavender law lawn lawsuit lawyer layer layout lead leader leaf leaflet lease
    leather lecture lecturer leg legacy legend lemon lens leopard lettuce leverage liberty librarian library lid lie
    life lifeguard lily limb lime limestone lineup linguist linoleum lion lip liquid list lithium litter liver
    lizard load loaf lobster locker locksmith logic loop loophole lord loss lot lottery love luck luggage lumber
    lunch lung lyric magazine magic magician magnesium magnet mahogany maid mainframe man mandate manifesto mantle
    manuscript maple marble march margin mark marriage mask mason mass mast master mat mate mathematician maximum
    mayor meadow meaning meat mechanic mechanism melody melon memorandum merchant mercury mercy merit mess messenger
    metal metaphor methane method mica microscope midnight migration mile milk mill mind miner mineral miniature
    minimum minister minstrel mint minute miracle mirror mistake mixture model modem monarchy monkey monologue
    monster month monument mood moon moral morning mortar mother motion motive motor mouse mouth move movie mud mug
    mule muscle mushroom music musician mystery myth nail napkin narrative nation nature navigation navy neck needle
    negotiator neighbour nephew nerve nest net news nickel night nitrogen noise nomination noodle nose notch
    notebook notice notion novelist nucleus nurse nut nylon oak oar oasis oat oath object obsidian obstacle ocean
    offer officer offspring oil olive omission onion opera operator opinion optician option orange orchid ordeal
    organ ostrich otter outbreak outfit outlet outline output overdraft overtime owl oxygen oyster pace pack pad
    page pain paint painter pair palace palm pamphlet pan pancake panel panic paper parachute parade paradox
    paraffin parameter parchment parent parsley part partner passage past pasta paste pastime patent path
    pathologist pathway patience pattern pavement paw payload pea peace peach peak peanut pear pearl peasant pebble
    pen pencil pendulum pepper percentage perfume perimeter period perspective petrol phase phenomenon philosopher
    phosphorus photograph photographer physicist pianist piano picnic picture pie pig pigeon pigment pile pilgrim
    pill pillar pillow pilot pin pine pink pinnacle pioneer pistol pit pitch placement plain plan plane plaster
    plate plateau platform platinum play playground plaza pleasure pledge plot plug plum plumber plumbing plutonium
    plywood pocket poet poetry point poison pole police policy politician polyester polygon pond pony pool porcelain
    porch pork porridge port portal porter portion portrait position postcard postscript pot potassium potato potter
    pottery powder practice prayer precedent predator preface present president prestige prey pride priest prince
    principal prison prize problem process produce producer professor profit program programmer promise proof
    property protein prototype proverb province provision proxy psychologist pudding puddle pumpkin punch pupil
    puppet puppy purse puzzle pyramid quadrant quality quarrel quarter quartz queen question quilt quiz quota
    quotation race rack radio radish radius raft rail rainbow raisin ranch rancher range ranger ransom ratio raven
    razor reader reason rebate rebel receptionist rectangle reef referendum reflection refuge regime registry
    rehearsal relief religion remainder remedy rent repair replica reporter reptile republic request rescue
    researcher reserve resident residue resin resort resource respect rest result resume retail retreat return
    revenue reversal revolt reward rhyme rhythm rib ribbon rice riddle rider riot ripple rise risk ritual rival rock
    rod roll roof roofer rookie root rope rose rosewood rotation roundabout routine row royalty rubber rug ruin rule
    ruler rumour runner rust sack saddle safety saga sail sailor saint salad salesman salmon sanctuary sand sandal
    sandwich sapphire satin sauce sausage saw scaffold scandal scar scarf scenario scene scent schedule scheme
    scholar scholarship science scientist scissors scoreboard scout scrap scratch screen screw script sculptor sea
    seal secret secretary section security seizure self senator sense sequel sequence sergeant series sermon servant
    sewage shade shadow shale shape shark sheep shell shelter shepherd sheriff shield shift shirt shock shoe
    shoemaker shore shortage shortcut shoulder shovel show shrimp shrub shuttle side sidewalk signal silence
    silhouette silicon simulation singer sink sister skate skeleton sketch skill skin skipper skirt skull sky
    skyline slate slave sleeve slice slide slogan slope smell smile smoke snack snail snake soap soccer society
    sociologist sock socket soda sodium sofa software soil soldier solicitor solution son sort soul sound soup
    souvenir space spade spark sparrow speaker spear species specimen spectrum speech spell spice spider spine
    spiral spirit spokesman spoon sport spray spreadsheet spring sprinter spy squire squirrel staff stain stair
    stairway stall stamina stamp standpoint starch state station statistic statue steak steam stem stereotype stew
    steward stick stimulus stitch stockpile stomach stone stool stop storm story stove stranger strategy straw
    strawberry stream strength stress string stripe structure study style subset substitute suburb suede suffix
    sugar suit sulphur sum summer summit sun sunset supplement surface surgeon surplus surprise surveyor survival
    suspension swamp swan sweater sweet swimmer swing sword symmetry symphony syndicate syntax system tablet tackle
    tail tailor talc tale talent talk tanner tap tape tar target tariff taste taxi teak tear technician teeth
    telegram teller temper template temple tenant tennis tent terminal terracotta terrain territory testimony
    texture theory therapist thesis thief thing thirst thorn thread threat threshold throat throne throttle thumb
    tide tie tiger tile timber timetable tip tissue titanium toad toast tobacco toe toilet tomato tone toolbox tooth
    top topography torch tornado touch tour tourist towel toy trace trader tradition traffic trail trainer
    transcript transition translator trap trash tray treasure treasurer treat treaty trial triangle tribe tribute
    trick trigger triumph trouble trousers trumpet trunk trust truth tub tube tuition tune tungsten turnover
    turpentine tutor tutorial tweed twig twin twist tycoon type typhoon tyranny ultimatum umbrella uncle undertaker
    uniform union universe update upgrade uranium usage use usher utensil vacancy vacuum valet valley van vanilla
    variable variety varnish vase vault vegetable vehicle veil vein velocity velvet venture verdict verse vertex
    vest veteran viaduct vicinity victim victory view viewpoint villa village vine vinegar violet violinist virtue
    virus vision vocabulary voice volcano volleyball volunteer voyage wagon waist waiter waitress walk wall wallet
    walnut war warden wardrobe warmth warranty wasp waste watch watchmaker water watermark wave waveform wavelength
    wax way weapon weaver wedge weed week weekday welder wheat wheel whip whirlpool whisker whisper whistle widget
    widow wife will willow wind wine wing winner winter wire wisdom wish witness wizard wolf woman wonder wood
    worker workflow worksheet world worm worth wreck wrestler wrist writer yard yarn year yearbook yeast yolk youth
    zebra zenith zero zinc zipper zone"""
)

ADJECTIVES = _of_training(
    """able absolute abstract absurd abundant acceptable accurate acid actual acute adequate adjacent advanced
    aggressive agile alike alive alone aloof amazing ambitious ample amused angry anxious apparent apt arid arrogant
    artificial ashamed asleep attractive automatic average aware awful awkward bald bare basic beautiful beneficial
    better big bitter bizarre black bland blank bleak blind blond blunt bold boring brave brief bright brilliant
    broad capable careful careless casual cautious central certain charming cheap cheerful chemical chief chilly
    circular civil classic clean clear clever clumsy coarse colossal comfortable comic common compact compatible
    complex concrete confident conscious constant convenient cool corrupt cosy crazy creamy creative crisp critical
    crooked crucial crude cruel cultural curious curly curved damp dangerous dark dead deaf dear decent decisive
    deep defiant delicate delicious dense dependent desperate different difficult direct dirty distant distinct
    divine dizzy double doubtful drab dramatic dreary drunk dual due dull dynamic eager easy economic efficient
    elaborate elastic elderly elegant eminent endless enormous entire equal essential eternal ethical evident evil
    exact excellent exotic expensive extinct extra extreme faint fair faithful false familiar famous fantastic far
    fast fat fatal favourite feeble female fertile few fierce final fit flaky flat flexible fluffy fluid foolish
    formal fortunate fragrant frail free frequent fresh friendly funny furious fuzzy generous gentle genuine ghastly
    gigantic glad glorious good gorgeous gradual grand grateful greasy great greedy grim gross grumpy guilty
    handsome handy happy hard harsh healthy helpful helpless hidden hideous high hollow holy honest horrible hostile
    huge human humble humid hungry husky icy ideal idle ignorant illegal immense important impossible inevitable
    inferior infinite innocent instant intense jealous joint jolly juicy keen lazy lean lethal liable likely limp
    linear liquid literal little lively lonely long loose lovely loyal lucky mad magnetic main male marine married
    massive mature mean mellow mental mere merry mighty minute misty modern modest moist moral muddy narrow nasty
    natural near neat negative nervous neutral nimble noble noisy normal notable numb obvious odd official only
    opaque opposite ordinary original oval painful pale parallel passive peaceful perfect physical plain plastic
    pleasant plump polite poor popular positive possible potential powerful precious pregnant pretty previous
    prickly prime probable productive prominent proper proud pure puzzled quaint quick radical rapid rare raw
    real recent regular relative relevant reliable remarkable responsible rich ridiculous rigid ripe robust rotten
    rough royal rude rusty sacred sad safe salty same sandy sane scarce secure selfish senior separate serious
    shaggy shallow sharp shiny shrill shy sick silly similar simple single skinny sleepy slender slight slim
    slippery slow sly smart smooth soft solid sore sour spare special spicy spiteful splendid stale standard static
    steady steep sticky stiff straight strange strict strong stupid subtle sudden suitable superb superior sure
    sweet swift tall tame tart tasty tender tense terrible thick thin thirsty thorough tidy tight tiny tired tough
    toxic tragic true typical ugly ultimate uneasy uniform unique unlikely upset useful useless vague vain valid
    valuable vast verbal vertical vicious violent visible vital vivid vocal weak wealthy weary weird white whole
    wicked wide wild wise wooden wrong yellow young zealous"""
)

VERBS = _of_training(
    """abandon absorb accept accuse achieve acquire adapt adjust admire admit adopt advance advise afford agree aim
    allow alter amuse analyse announce annoy anticipate apologise appeal appear applaud apply appoint appreciate
    approach approve argue arise arrange arrest arrive ask assemble assert assess assign assist assume assure attach
    attack attempt attend attract avoid awake bake ban bargain bathe battle beat become beg behave believe belong
    bend bet bind bite blame blend bless blink block blow blush boast boil bomb borrow bother bounce bow breathe
    breed bring broadcast bruise bully bump burn burst bury buy calculate cancel capture carry carve cast catch
    celebrate challenge chase cheat check cheer chew choke choose chop claim clap clarify clean clear click climb
    cling close collapse collect combine command compare compete complain compose compute conceal concern conclude
    confess confirm confuse congratulate connect conquer consider consist construct consult consume contain continue
    contribute convert convince cool cope correct cover crack crash crawl create creep criticise cross crush cry
    cultivate cure cut cycle damage dare darken deal decay deceive decide declare decline decorate decrease dedicate
    defeat defend define delight deliver demand demonstrate deny depart depend deposit derive describe deserve
    destroy detect determine develop devote differ dig dip direct disagree disappear disapprove discover discuss
    disguise dislike dismiss display dispose distinguish distribute disturb dive divide double doubt drag drain draw
    drift drink drive drop drown dump dwell earn eat edit educate elect eliminate embarrass embrace emerge emphasise
    employ enable encourage endure engage enjoy enlarge ensure entertain escape establish estimate evaluate evolve
    examine exceed excite exclude excuse exist expand expect explain explode explore export extend face fade fail
    fancy fasten favour feed fetch fight fill finance fire fit fix flash flee float flood flow fly focus fold force
    forgive found frame freeze frighten fry fulfil function gain gather gaze generate glance glow glue grab grease
    greet grin grip groan grow guarantee guard guess guide halt hand hang happen harm hasten hatch hate haul haunt
    heal heap heat help hesitate hide highlight hire hit hold hook hop hope hover hug hum hunt hurry hurt identify
    ignore illustrate imagine imitate impress improve increase indicate infect inflate influence inform inherit
    inject injure insist inspect inspire install instruct insult intend interfere interpret interrupt introduce
    invade invent invest investigate invite involve irritate itch jail jog join judge juggle jump justify kick kill
    kiss kneel knit knock last laugh launch lay lean leap learn leave lend lick lift lighten listen live load locate
    long lose maintain manage manufacture marry master mean melt mend mention milk mind mine miss mix moan modify
    motivate mourn move multiply murder nail nest nod notice obey object observe obtain occupy occur offend offer
    operate oppose organise overcome overflow overlook owe own pack paddle paint participate pass paste pat pause
    peck pedal peel peep perform persuade pick pinch plan play plead plug point poke pop possess pour practise
    praise pray preach precede prefer prepare present preserve press pretend prevent prick proceed produce program
    promise promote propose protect protest prove provide pull punch puncture punish purchase pursue push puzzle
    qualify question quit race raise reach react realise rebuild recall receive recognise recommend recover recruit
    recycle reduce refer reflect refuse regain regard regret regulate reject rejoice relate relax rely remain remind
    remove renew repair repeat replace represent reproduce rescue resemble resign resist resolve respond restore
    restrict retain retire retrieve return reveal reverse revise rewrite rhyme rid rinse rise roar rob rock roll rot
    rub ruin rule rush sack sail satisfy save scare scatter scold scorch scrape scratch scream screw scribble scrub
    seal secure seek seem seize select separate settle sew shake sharpen shave shelter shift shine shiver shock
    shoot shout shrink shrug shut sigh simplify sing sink sip skip slap slice slide slip slow smash smell smile
    smoke smooth snatch sneeze sniff snore soak solve soothe sow spare sparkle specify spill spin spit split spoil
    spray spread sprout squash squeak squeal squeeze stain stamp stare starve stay steal steer stimulate stir stitch
    stop strap strengthen stretch strike strip strive stroke struggle stuff submit succeed suck suffer suggest sum
    support suppose surprise survive suspect suspend sway swear sweat sweep swell swim swing tame tangle tap taste
    tear tease tempt terrify thank thaw think threaten throw tick tickle tie tighten tip tire toss touch tour tow
    trace transform transmit transport trap travel tread treat tremble trick trot trust try tug tumble turn twist
    unfold unite unlock unpack urge vanish vary visit wail wait wake walk wander warn wash waste water wave weaken
    wear weave weep weigh welcome whine whip whirl whisper whistle win wind wink wipe wish withdraw wobble wonder
    worry worship wreck wrestle wriggle yawn yell yield zoom"""
)
WORDS = (*NOUNS, *ADJECTIVES, *VERBS)

# What else is made of them, for lists of which each would have a few dozen things: ends of names, regions, more than
# one of something, what a flag has done, and the options of an enum.
CAPITALS = tuple(word.capitalize() for word in WORDS)
PAIRS = tuple("".join(pair) for pair in product(ascii_uppercase, repeat=2) if side_of("".join(pair)) is Side.TRAIN)
SEVERAL = tuple(f"{noun}s" for noun in NOUNS if noun[-1] not in "shxy" and side_of(f"{noun}s") is Side.TRAIN)
DEEDS = tuple(f"{verb} {noun}" for verb, noun in zip(VERBS, (*SEVERAL[::2], *SEVERAL[1::2]), strict=False))
CHOICES = tuple(" ".join(ADJECTIVES[at : at + 2 + at % 3]) for at in range(0, len(ADJECTIVES) - 4, 3))
