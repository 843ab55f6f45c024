"""Two hundred texts in twenty scripts: ten of each, words of it alone and among what else stands in texts."""

from __future__ import annotations

WORDS = {
    "Latin": ("Die Größe des Übels erklärt sich später.", "Dziękuję, naïve façade, coöperate"),
    "Cyrillic": ("Москва — столица России.", "Дякую за допомогу, ђак ћути"),
    "Greek": ("Η Αθήνα είναι η πρωτεύουσα.", "Καλημέρα κόσμε, ᾠδή"),
    "Arabic": ("القاهرة عاصمة مصر.", "السَّلامُ عليكم، كيف الحال؟"),
    "Hebrew": ("ירושלים היא עיר עתיקה.", "שָׁלוֹם, מה שלומך?"),
    "Devanagari": ("दिल्ली भारत की राजधानी है।", "नमस्ते, आप कैसे हैं?"),
    "Bengali": ("ঢাকা বাংলাদেশের রাজধানী।", "আপনি কেমন আছেন?"),
    "Tamil": ("சென்னை ஒரு பெரிய நகரம்.", "வணக்கம், நலமா?"),
    "Telugu": ("హైదరాబాద్ ఒక పెద్ద నగరం.", "నమస్కారం, ఎలా ఉన్నారు?"),
    "Kannada": ("ಬೆಂಗಳೂರು ಒಂದು ದೊಡ್ಡ ನಗರ.", "ನಮಸ್ಕಾರ, ಹೇಗಿದ್ದೀರಿ?"),
    "Malayalam": ("കൊച്ചി ഒരു തുറമുഖ നഗരമാണ്.", "നമസ്കാരം, സുഖമാണോ?"),
    "Gujarati": ("અમદાવાદ એક મોટું શહેર છે.", "કેમ છો, મજામાં?"),
    "Gurmukhi": ("ਅੰਮ੍ਰਿਤਸਰ ਇੱਕ ਸ਼ਹਿਰ ਹੈ।", "ਸਤ ਸ੍ਰੀ ਅਕਾਲ"),
    "Thai": ("กรุงเทพเป็นเมืองหลวงของไทย", "สวัสดีครับ สบายดีไหม"),
    "Khmer": ("ភ្នំពេញជារាជធានី", "សួស្តី តើអ្នកសុខសប្បាយទេ"),
    "Georgian": ("თბილისი საქართველოს დედაქალაქია.", "გამარჯობა, როგორ ხარ?"),
    "Armenian": ("Երևանը Հայաստանի մայրաքաղաքն է։", "Բարև, ինչպե՞ս ես"),
    "Han": ("北京是中国的首都。", "臺灣的圖書館很漂亮，謝謝！"),
    "Kana": ("東京は日本の首都です。", "ありがとうございます、カメラとテレビ"),
    "Hangul": ("서울은 대한민국의 수도입니다.", "안녕하세요, 잘 지내세요?"),
}


def texts() -> list[str]:
    """All of them."""
    found = []
    for one, other in WORDS.values():
        found += [
            one,
            other,
            f"{one} {other}",
            f"{other}\n\n\n{one}\n",
            f"  {one}   {other}\t\t{one}",
            f"# {one}\n- {other}\n1. {one}",
            f'{{"text": "{other}", "n": 1234567.89, "ok": true}}',
            f"def f(x):\n    return x  # {one}\n",
            f"<b>{one}</b> 🙂🏽 {other} <start_of_turn> <0x41> ▁",
            f"2026-11-25 12:34 {other}: 50 % < {one} > 3·10⁸ ½ ﬁ",
        ]
    return found
