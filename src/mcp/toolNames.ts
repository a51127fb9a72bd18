/** The names that the model calls a server's tools with. */

/** As many characters as a tool's name may have. */
const maxLength = 128

const acceptable = (name: string): string => name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, maxLength)

/** `name`, or `name_2`, `name_3` …: the first that is free. */
const free = (name: string, taken: ReadonlySet<string>): string => {
  if (!taken.has(name)) return name
  for (let count = 2; ; count++) {
    const suffix = `_${count}`
    const numbered = name.slice(0, maxLength - suffix.length) + suffix
    if (!taken.has(numbered)) return numbered
  }
}

/**
 * A name for each of these different ones, in their order, that providers take: the prefix in front, `_` for what is
 * neither a letter of ASCII, a digit, `_` nor `-`, and cut at 128 characters. A name that needs no change stays as it is;
 * of the others, one that has become like an earlier one is numbered.
 */
export const toolNames = (names: ReadonlyArray<string>, prefix: string): ReadonlyArray<string> => {
  const wanted = names.map(name => prefix + name)
  const taken = new Set(wanted.filter(name => acceptable(name) === name))
  return wanted.map(name => {
    if (taken.has(name)) return name
    const made = free(acceptable(name), taken)
    taken.add(made)
    return made
  })
}
