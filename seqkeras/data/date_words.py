"""Words next to dates, and words of texts without a date, in the languages of the dates.

Few words are written here: what people set before a date. Many come from CLDR, the names of
countries and languages, so that a model meets words that it has never read.
"""

import hashlib
import unicodedata
from functools import cache

from babel import Locale

from seqkeras.data.date_noise import resembles_a_name

BEFORE = {  # language -> what stands before a date
    "en": "on, from, by, since, due, due on, born, born on, date:, deadline:, updated:, "
    "invoice of, meeting on, until, expires, issued, published on, see you on, flight"
    " on, dated",
    "de": "am, vom, bis, seit, ab, Datum:, geboren am, Rechnung vom, gültig bis, Stand:, "
    "fällig am, Termin:, Sitzung vom, bezahlt am",
    "fr": "le, du, au, depuis le, né le, date :, facture du, avant le, réunion du, publié "
    "le, fait le, valable jusqu'au",
    "es": "el, desde el, hasta el, fecha:, nacido el, factura del, reunión del, vence el, "
    "publicado el, a partir del",
    "it": "il, dal, al, data:, nato il, fattura del, riunione del, scade il, pubblicato il,"
    " entro il",
    "pt": "em, no dia, desde, até, data:, nascido em, fatura de, reunião de, vence em, "
    "publicado em",
    "nl": "op, van, tot, sinds, datum:, geboren op, factuur van, vergadering van, geldig "
    "tot, uiterlijk",
    "sv": "den, från, till, sedan, datum:, född den, faktura, möte den, giltig till, senast",
    "pl": "dnia, od, do, data:, ur., faktura z dnia, spotkanie, ważne do, opublikowano, w dniu",
    "cs": "dne, od, do, datum:, narozen, faktura ze dne, schůzka, platí do, vydáno, v Praze dne",
    "ru": "от, до, с, дата:, родился, счёт от, встреча, действует до, срок:, опубликовано",
    "uk": "від, до, з, дата:, народився, рахунок від, зустріч, дійсний до, термін:, опубліковано",
    "tr": "tarih:, doğum tarihi:, son gün, fatura, toplantı, itibaren, yayın:, geçerlilik:",
    "el": "στις, από, έως, ημερομηνία:, γεννήθηκε, τιμολόγιο, συνάντηση, λήγει",
    "zh": "日期:, 于, 截至, 出生日期:, 发票, 会议, 有效期至, 发布于",
    "ja": "日付:, 生年月日:, 期限:, 請求書, 会議, 開始, 更新, 発行",
    "ko": "날짜:, 생년월일:, 기한:, 청구서, 회의, 시작, 발행",
    "fi": "päivämäärä:, syntynyt, lasku, kokous, alkaen, viimeistään, julkaistu, voimassa",
    "hu": "dátum:, született, számla, ülés, kelt, határidő:, érvényes, közzétéve",
    "id": "pada, tanggal, sejak, sampai, lahir, faktur, rapat, berlaku, terbit, tgl",
    "vi": "vào, từ, đến, ngày:, sinh, hóa đơn, họp, hạn:, cập nhật",
    "ar": "في, منذ, حتى, التاريخ:, ولد في, فاتورة, اجتماع, صدر في",
    "he": "בתאריך, מיום, עד, תאריך:, נולד, חשבונית, פגישה, פורסם",
    "hi": "दिनांक, तारीख:, जन्म, बैठक, से, चालान, अंतिम तिथि:, प्रकाशित",
    "ro": "pe, din, până la, data:, născut la, factura din, ședința, valabil până la",
    "da": "den, fra, til, siden, dato:, født den, faktura, møde den, senest",
    "nb": "den, fra, til, siden, dato:, født, faktura, møte, senest, gyldig til",
}
PARTS = (*8 * ("train",), "validation", "test")


def before(locale: str) -> tuple[str, ...]:
    """Return what people set before a date, as a tuple."""
    return tuple(BEFORE[locale.partition("_")[0]].split(", "))


@cache
def words(locale: str, split: str) -> tuple[str, ...]:
    """Return names of countries and languages, none of which is another split's, as a tuple.

    Names that hold a digit, or are written much like a month or a weekday, are left out.
    """
    cldr = Locale.parse(locale)
    names = sorted({*cldr.territories.values(), *cldr.languages.values()})
    names = [unicodedata.normalize("NFC", name) for name in names]
    return tuple(name for name in names if _split_of(name) == split and _is_plain(locale, name))


def _split_of(word):
    digest = hashlib.sha256(word.encode()).digest()
    return PARTS[int.from_bytes(digest[:8], "big") % len(PARTS)]


def _is_plain(locale, name):
    if len(name) > 20 or any(character.isdigit() for character in name):
        return False
    return not any(resembles_a_name(locale, word) for word in name.split())


def characters(locale: str) -> set[str]:
    """Return the characters of what stands before a date, in lower and upper case, as a set."""
    text = " ".join(before(locale))
    return {*text, *text.lower(), *text.upper()}
