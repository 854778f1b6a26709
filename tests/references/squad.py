"""The definitions of evaluate-v2.0.py, question by question: "" is no answer; and for Chinese the
words of mlqa_evaluation_v1.py."""

import unicodedata

ARTICLES = {"a", "an", "the"}
PUNCTUATION = r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""  # of ASCII


def words(text):
    """Lower case, without punctuation, without articles: an article is a word between
    characters that are no letter, digit or underscore."""
    kept = "".join(character for character in text.lower() if character not in PUNCTUATION)
    parts, run = [], ""
    for character in kept + " ":
        if character.isalnum() or character == "_":
            run += character
        else:
            parts += [" " if run in ARTICLES else run, character]
            run = ""
    return "".join(parts).split()


def golds(answers):
    return [answer for answer in answers if words(answer)] or [""]


def exact(text, answers):
    return max(int(words(text) == words(gold)) for gold in golds(answers))


def f1(text, answers):
    return max(f1_of_words(words(text), words(gold)) for gold in golds(answers))


def f1_of_words(found, right):
    if not found or not right:
        return float(found == right)
    left, same = list(right), 0
    for word in found:
        if word in left:
            left.remove(word)
            same += 1
    precision, recall = same / len(found), same / len(right)
    return 2 * precision * recall / (precision + recall) if same else 0.0


def best_threshold(texts, targets, no_answer_scores):
    """(best mean F1, the score above which there is no answer), of scores that differ."""
    current = best = sum(golds(answers) == [""] for answers in targets)
    threshold = 0.0
    for place in sorted(range(len(texts)), key=lambda place: no_answer_scores[place]):
        if golds(targets[place]) != [""]:
            current += f1(texts[place], targets[place])
        elif texts[place]:
            current -= 1
        if current > best:
            best, threshold = current, no_answer_scores[place]
    return best / len(texts), threshold


def words_of_chinese(text):
    """Lower case, without the punctuation of Unicode and of ASCII; each character from U+4E00 to
    U+9FA5 is a word, and what stands between them is cut at spaces."""
    parts, run = [], ""
    for character in text.lower():
        if character in PUNCTUATION or unicodedata.category(character).startswith("P"):
            continue
        if "\u4e00" <= character <= "\u9fa5":
            parts += [*run.split(), character]
            run = ""
        else:
            run += character
    return [*parts, *run.split()]


def f1_of_chinese(text, answers):
    found = words_of_chinese(text)
    scores = (f1_of_words(found, words_of_chinese(gold)) for gold in answers if found)
    return max(scores, default=0.0)
