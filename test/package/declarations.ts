/**
 * The public names of the package, read from the text of its modules: sources, or the declarations that are built from
 * them. Reading relies on the formatter: a statement begins at the start of a line, and what belongs to it is indented.
 */
import { dirname, join } from "node:path/posix"

interface Documented {
  readonly name: string
  /** The doc comment right above. */
  readonly comment: string | undefined
}

interface Member extends Documented {
  readonly isCallable: boolean
}

export interface Declaration extends Documented {
  /** Its path, without extension. */
  readonly module: string
  readonly kind: string
  /** What is public of an interface or a class. An overloaded method is one member. */
  readonly members: ReadonlyArray<Member>
}

interface Statement {
  readonly text: string
  readonly comment: string | undefined
}

/** Whether a line goes on with the statement above it. */
const goesOn = (line: string): boolean => /^[\s})\]>]/.test(line)

const statementsOf = (text: string): ReadonlyArray<Statement> => {
  const statements: Array<{ text: string; comment: string | undefined }> = []
  let comment: string | undefined
  let isOpen = false
  let isInStatement = false
  for (const line of text.split("\n")) {
    if (isOpen || line.startsWith("/**")) {
      comment = isOpen ? `${comment}\n${line}` : line
      isOpen = !line.includes("*/")
      isInStatement = false
    } else if (line === "" || line.startsWith("//")) {
      if (!isInStatement) comment = undefined
    } else if (isInStatement && goesOn(line)) {
      const last = statements.at(-1)
      if (last !== undefined) last.text += `\n${line}`
    } else {
      statements.push({ text: line, comment })
      comment = undefined
      isInStatement = true
    }
  }
  return statements
}

const modifiers = /^(?:(?:public|static|override|readonly|declare|abstract|async|get|set) |\*)*/

const memberPattern = /^(\w+|"[^"]+")((?:[?!]?[:(<;]|\s*=|$)[\s\S]*)/

/** The members that have a name and are public. */
const membersOf = (statement: string): ReadonlyArray<Member> => {
  if (/\{\s*\}$/.test(statement)) return []
  const lines = statement.split("\n")
  const start = lines.findLastIndex(line => /^(?:\S| {2}extends | {2}implements ).*\{$/.test(line))
  const body = lines.slice(start + 1, -1)
  const indent = /^ */.exec(body[0] ?? "")?.[0] ?? ""
  const members = new Map<string, Member>()
  for (const { comment, text } of statementsOf(body.map(line => line.slice(indent.length)).join("\n"))) {
    const [, name, rest = ""] = memberPattern.exec(text.replace(modifiers, "")) ?? []
    if (name === undefined || name === "constructor" || members.has(name)) continue
    members.set(name, { name, comment, isCallable: /^[?!]?(?:[(<]|: [(<]| = (?:async )?[(<])/.test(rest) })
  }
  return [...members.values()]
}

/** A name of another module. `*`: all of its names. */
interface Link {
  readonly name: string
  readonly original: string
  /** The path of the module; `undefined` for this one. */
  readonly from: string | undefined
}

interface Module {
  readonly declarations: ReadonlyArray<Declaration & { readonly isExported: boolean }>
  readonly exported: ReadonlyArray<Link>
  readonly imported: ReadonlyArray<Link>
  /** Statements that export in a way that this reader does not know. */
  readonly unknown: ReadonlyArray<string>
}

const declarationPattern =
  /^(export )?(?:declare )?(?:abstract )?(?:async )?(const|let|class|interface|type|function|enum|namespace)\*? (\w+)/

const linkPattern = /^(export|import) (?:type )?(?:\{([^}]*)\}|\*(?: as (\w+))?)(?:\s+from "([^"]+)")?;?$/

/** `A`, `type A`, `A as B`, between commas. */
const namesIn = (list: string): ReadonlyArray<{ readonly name: string; readonly original: string }> =>
  Array.from(list.matchAll(/(?:type )?\b(\w+)(?: as (\w+))?/g), ([, original = "", name = original]) => ({
    name,
    original
  }))

const parse = (path: string, text: string): Module => {
  const module = { declarations: [], exported: [], imported: [], unknown: [] }
  const declarations: Array<Module["declarations"][number]> = module.declarations
  const links: Record<"export" | "import", Array<Link>> = { export: module.exported, import: module.imported }
  const unknown: Array<string> = module.unknown
  for (const { comment, text: statement } of statementsOf(text)) {
    const [, exported, kind, declared] = declarationPattern.exec(statement) ?? []
    const link = linkPattern.exec(statement)
    if (kind !== undefined && declared !== undefined) {
      const members = kind === "interface" || kind === "class" ? membersOf(statement) : []
      // Overloads of a function share the comment of the first.
      const isOverload = kind === "function" && declarations.some(({ name }) => name === declared)
      const isExported = exported !== undefined
      if (!isOverload) declarations.push({ module: path, kind, name: declared, comment, members, isExported })
    } else if (link !== null) {
      const [, word, list, name = "*", specifier] = link
      const from = specifier?.startsWith(".")
        ? join(dirname(path), specifier).replace(/\.js$/, "")
        : specifier
      const names = list === undefined ? [{ name, original: "*" }] : namesIn(list)
      links[word === "export" ? "export" : "import"].push(...names.map(item => ({ ...item, from })))
    } else if (statement.startsWith("export")) {
      unknown.push(`${path}: ${statement.split("\n", 1)[0]}`)
    }
  }
  return module
}

export interface Surface {
  readonly declarations: ReadonlyArray<Declaration>
  /** Statements that export in a way that this reader does not know. */
  readonly unknown: ReadonlyArray<string>
}

/**
 * What doors export, followed to where it is declared. `read` gives the text of a module of the package by its path
 * without extension, and `undefined` for what is none.
 */
export const surfaceOf = (
  doors: ReadonlyArray<string>,
  read: (path: string) => string | undefined
): Surface => {
  const modules = new Map<string, Module>()
  const found = new Set<Declaration>()
  const visited = new Set<string>()
  const load = (path: string): Module | undefined => {
    const text = modules.has(path) ? undefined : read(path)
    if (text !== undefined) modules.set(path, parse(path, text))
    return modules.get(path)
  }
  const visit = (path: string, wanted: string): void => {
    const module = visited.has(`${path}#${wanted}`) ? undefined : load(path)
    visited.add(`${path}#${wanted}`)
    if (module === undefined) return
    const isWanted = ({ name }: { readonly name: string }): boolean => wanted === "*" || wanted === name
    for (const declaration of module.declarations) {
      if (declaration.isExported && isWanted(declaration)) found.add(declaration)
    }
    for (const { from, name, original } of module.exported) {
      if (name !== "*" && !isWanted({ name })) continue
      if (from !== undefined) visit(from, name === "*" ? wanted : original)
      else {
        for (const declaration of module.declarations)
          if (declaration.name === original) found.add(declaration)
        for (const link of module.imported) {
          if (link.name === original && link.from !== undefined) visit(link.from, link.original)
        }
      }
    }
  }
  for (const door of doors) visit(door, "*")
  return { declarations: [...found], unknown: [...modules.values()].flatMap(({ unknown }) => unknown) }
}
