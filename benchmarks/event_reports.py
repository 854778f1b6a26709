"""Made reports of events, whose summaries are determined by what they tell.

    On 3 May a fire broke out in Lund. ... Four people were hurt. ... The cause was a candle.
    -> Fire in Lund on 3 May. Four hurt by a candle.

A report has its facts in any order, between sentences that tell nothing, and a sentence about an
older event in another town. The same seed makes the same reports.
"""

import random

TOWNS = (
    "Lund Oslo Bergen Turku Kiel Ghent Porto Braga Siena Parma Graz Linz Brno Pecs Riga Kaunas "
    "Cork Leeds York Dijon Reims Nantes Basel Bern Malmo Tampere Aarhus Odense Tartu Lodz"
).split()
EVENTS = {
    "fire": ("broke out", ("a candle", "an old cable", "a stove", "a firework")),
    "flood": ("began", ("heavy rain", "a broken dam", "melting snow", "a burst pipe")),
    "crash": ("happened", ("black ice", "thick fog", "a broken brake", "a fallen tree")),
    "strike": ("started", ("low wages", "long hours", "a lost contract", "unsafe machines")),
}
MONTHS = "January February March April May June July August September October November December"
NUMBERS = "No One Two Three Four Five Six Seven Eight Nine Ten".split()
IDLE = (
    "The mayor spoke to the press in the evening.",
    "Many people stood in the street and watched.",
    "Schools stayed closed on the next day.",
    "The weather was calm again by noon.",
    "A spokeswoman thanked all helpers.",
    "Trains were late for several hours.",
    "Neighbours brought tea and bread.",
    "The road was open again at night.",
)


def reports(count, seed):
    """Return (report, summary) pairs, lists of sentences and strings."""
    draw = random.Random(seed)
    return [_report(draw) for _ in range(count)]


def _report(draw):
    kind, other = draw.sample([*EVENTS], 2)
    town, elsewhere = draw.sample(TOWNS, 2)
    begins, causes = EVENTS[kind]
    day, month = draw.randint(1, 28), draw.choice(MONTHS.split())
    hurt, cause = NUMBERS[draw.randrange(2, 11)], draw.choice(causes)
    facts = [f"{hurt} people were hurt.", f"The cause was {cause}.", *draw.sample(IDLE, 2)]
    facts.append(f"The {other} in {elsewhere} in {draw.choice(MONTHS.split())} was worse.")
    draw.shuffle(facts)
    first = f"On {day} {month} a {kind} {begins} in {town}."
    return [
        first,
        *facts,
    ], f"{kind.capitalize()} in {town} on {day} {month}. {hurt} hurt by {cause}."
