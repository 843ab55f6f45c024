"""Names of people, places and organisations, in many scripts."""

from training.data.side import split
from training.data.words import common

GIVEN = split(
    """Anna Peter Maria James Laura Thomas Julia Robert Emma Daniel Sofia Martin Clara Victor Nina Oscar Helen Paul
    Alice Simon Irene Felix Rosa George Diana Hugo Vera Leon Marta Adam Eva Jonas Lena Frank Olga Ivan Petra Marc
    Aisha Omar Fatima Yusuf Priya Arjun Mei Jun Hana Kenji Chloe Louis Ines Diego Carmen Pablo Lucia Matteo Giulia
    Björn Åsa Søren Jürgen Zoë René Łukasz Šárka Nuño Renée François Óscar Mónica Dörte Çelik Ağnes""",
    held_out="""Tobias Greta Nadia Walter Beatrix Cedric Ottilie Raphael Saskia Gideon Mirela Casimir Leonie Bruno
    Kofi Amara Thandiwe Rohan Anjali Yuki Soo-jin Anaïs Zdeněk Jörg Siobhán Þóra Ødegaard""",
)

FAMILY = split(
    """Smith Miller Brown Jones Garcia Martinez Rossi Ferrari Weber Fischer Schneider Wagner Becker Hoffmann Novak
    Svensson Hansen Nielsen Larsen Kowalski Nowak Silva Santos Costa Dubois Laurent Moreau Bernard Tanaka Suzuki Chen
    Wang Kim Park Singh Patel Khan Ahmed Hassan Ali Cohen Levy Murphy Kelly Walker Turner Cooper Ward Baker Clark
    Müller Gómez Núñez Sørensen Dvořák Çetin Öztürk Lefèvre Peña Wójcik""",
    held_out="""Thornbury Ashgrove Lindqvist Petrovic Oyelaran Castellanos Vandermeer Okonkwo Fitzgerald Marchetti
    Haraldsen Yamaguchi Bhattacharya Szymański Grünwald Håkansson Benítez O'Rourke""",
)

CITIES = split(
    """Paris, London, Berlin, Madrid, Rome, Vienna, Prague, Warsaw, Oslo, Stockholm, Helsinki, Dublin, Lisbon, Athens,
    Cairo, Nairobi, Lagos, Mumbai, Delhi, Tokyo, Osaka, Seoul, Beijing, Shanghai, Sydney, Melbourne, Toronto, Montreal,
    Chicago, Boston, Seattle, Denver, Austin, Dallas, Miami, New York, Los Angeles, Mexico City, Lima, Bogotá,
    São Paulo, Buenos Aires, Santiago, Zürich, Köln, München, Malmö, Łódź, Kraków, Lyon, Nice, Porto, Turin, Naples,
    "Portland, OR" """.replace('"Portland, OR"', "Portland"),
    held_out="""Reykjavík, Ljubljana, Tallinn, Valletta, Antwerp, Gdańsk, Brno, Bergen, Leipzig, Bilbao, Sarajevo,
    Windhoek, Kampala, Hanoi, Kathmandu, Hobart, Winnipeg, Savannah, Cusco, Montevideo, Addis Ababa, Salt Lake City""",
)

REGIONS = split(
    "TX, WA, MA, IL, Ontario, Bavaria, Provence, Tuscany, France, Japan, Brazil, Kenya, Spain, Norway",
    held_out="OR, GA, UT, Quebec, Saxony, Galicia, Umbria, Iceland, Peru, Vietnam, Uganda",
    more=(*common.PAIRS, *common.CAPITALS[::4]),
)

COMPANY_ENDS = split(
    "Ltd, Inc, GmbH, Group, Partners, Labs, Foods, Motors, Systems, Bank, Studio, & Sons, Logistics",
    held_out="AG, Holdings, Cooperative, Brewery, Textiles, Robotics, Airlines, & Daughters",
    more=common.CAPITALS,
)

MAIL_DOMAINS = split(
    "example.com example.org mail.example test.example", held_out="example.net post.example inbox.test"
)

LANGUAGES = split(
    "English German French Spanish Italian Portuguese Dutch Swedish Polish Czech Russian Arabic Hindi Japanese Korean",
    held_out="Icelandic Finnish Hungarian Basque Swahili Tamil Vietnamese Catalan Latvian",
    more=common.CAPITALS[1::4],
)

# Names as they are written where they come from.
CHINESE = split(
    """王伟, 李娜, 张敏, 刘洋, 陈静, 杨帆, 赵磊, 黄丽, 周杰, 吴刚, 北京, 上海, 广州,
    长江贸易, 东方科技, 明月书店, 山水设计""",
    held_out="孙晓梅, 马文涛, 欧阳志远, 林可欣, 成都, 杭州, 星海集团, 红叶餐厅, 飞鸟科技有限公司",
)
JAPANESE = split(
    "田中, 佐藤花子, 鈴木一郎, 高橋, 山本さくら, ひろし, あおい, タカシ, 大阪, 横浜, 東海商事, みどり薬局, サクラ電機",
    held_out="中村健太, 小林ゆき, わたなべ, 札幌, 神戸, ほしぞら出版, ミナト運輸株式会社, 青葉製作所",
)
KOREAN = split(
    "김민수, 이지은, 박준호, 최유리, 정다은, 서울, 부산, 한빛전자, 푸른은행",
    held_out="강하늘, 윤서연, 대전, 광주, 새벽출판사, 노을식품",
)
CYRILLIC = split(
    """Иван Петров, Мария Иванова, Алексей, Ольга, Дмитрий Соколов, Наталья, Москва, Киев, София, Белград, Север,
    Заря, Михаил Орлов, Елена, Павел""",
    held_out="Светлана Кузнецова, Григорий, Тамара Волкова, Новосибирск, Одесса, Рассвет, Юрий Щербаков, Жанна",
)
ARABIC = split(
    "أحمد, فاطمة, محمد علي, ليلى, خالد, سارة, القاهرة, بغداد, دمشق, شركة النور, مكتبة الأمل, يوسف",
    held_out="عبد الرحمن, مريم حسن, طارق, نجوى, الرباط, مسقط, شركة الصحراء, مخبز الوردة",
)
OTHER_SCRIPTS = split(
    """Γιώργος, Ελένη, Νίκος Παπαδόπουλος, Αθήνα, דוד, שרה כהן, תל אביב, राहुल, प्रिया शर्मा, दिल्ली, สมชาย, กรุงเทพ,
    Նարեկ, გიორგი, தமிழ், ירושלים, Σοφία""",
    held_out="Κατερίνα, Θεσσαλονίκη, Δημήτρης, רחל לוי, חיפה, अनीता वर्मा, मुंबई, มาลี, เชียงใหม่, Արամ, ნინო, முருகன்",
)

GREETINGS = split(
    """English:Good day, German:Guten Tag, French:Bonjour, Spanish:Buenos días, Italian:Buongiorno, Dutch:Goedendag,
    Swedish:God dag, Polish:Dzień dobry, Portuguese:Bom dia, Czech:Dobrý den, Danish:Goddag, Latin:Salve""",
    held_out="Norwegian:God morgen, Turkish:Merhaba, Hungarian:Jó napot",
)
