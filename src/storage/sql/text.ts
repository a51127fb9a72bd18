/** Text as databases keep it: PostgreSQL refuses the character U+0000, and libSQL reads text up to it only. */

/** Stands before a character that says what is meant. It is in no JSON text, and hardly in any other. */
const escape = "\u001a"

/** Text without U+0000: equal of equal texts only, and the same text when there is nothing to escape. */
export const escapeNul = (text: string): string =>
  text.includes("\u0000") || text.includes(escape)
    ? text.replaceAll(escape, `${escape}1`).replaceAll("\u0000", `${escape}0`)
    : text

/** The text that was escaped. */
export const unescapeNul = (text: string): string =>
  text.includes(escape) ? text.replaceAll(`${escape}0`, "\u0000").replaceAll(`${escape}1`, escape) : text
