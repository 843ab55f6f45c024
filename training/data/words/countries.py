"""Countries."""

from training.data.side import Side, Split, listed, side_of

_WRITTEN = listed(
    """Albania, Argentina, Austria, Bangladesh, Belgium, Bolivia, Brazil, Bulgaria, Cambodia, Cameroon, Chad, Chile,
    China, Colombia, Croatia, Cuba, Cyprus, Denmark, Ecuador, Egypt, England, Estonia, Ethiopia, France, Gambia,
    Germany, Ghana, Greece, Guatemala, Haiti, Honduras, Hungary, Indonesia, Iraq, Italy, Jamaica, Japan, Jordan, Kenya,
    Kuwait, Laos, Latvia, Lebanon, Liberia, Libya, Lithuania, Luxembourg, Malawi, Malaysia, Mali, Malta, Mexico,
    Moldova, Mongolia, Morocco, Mozambique, Myanmar, Namibia, Nepal, Nicaragua, Niger, Nigeria, Norway, Pakistan,
    Panama, Paraguay, Poland, Portugal, Qatar, Romania, Russia, Rwanda, Scotland, Senegal, Serbia, Singapore, Slovakia,
    Somalia, South Africa, South Korea, Spain, Sudan, Switzerland, Syria, Taiwan, Tanzania, Thailand, Tunisia, Turkey,
    Ukraine, United States, Uruguay, Wales, Yemen, Zambia, Zimbabwe, New Zealand, Costa Rica, Saudi Arabia, USA, UK"""
)
_KEPT = listed(
    """Angola, Armenia, Botswana, Czechia, Finland, Georgia, Iceland, Ireland, Israel, Kyrgyzstan, Peru,
    Philippines, Slovenia, Sri Lanka, Sweden, Uganda, Uzbekistan, Venezuela, Vietnam"""
)
COUNTRIES = Split(tuple(each for each in _WRITTEN if side_of(each) is Side.TRAIN), _KEPT)
"""Those that belong to training by their text: a made-up word of the other side may be a country by chance."""
