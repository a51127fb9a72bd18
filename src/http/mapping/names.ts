/** Ids that are used once: models call their blocks "0" in every turn. */
export class Names {
  private readonly used = new Set<string>()

  /** The id itself when nobody has it yet, else the id with a number. The same calls give the same ids. */
  claim(id: string): string {
    let name = id
    for (let count = 2; this.used.has(name); count++) name = `${id}:${count}`
    this.used.add(name)
    return name
  }
}
