/** What the two databases say differently. Everything else is written once, for both. */
import { type Statement, statement } from "./executor.js"

export interface Dialect {
  /** The type of a column of text that is compared and ordered by its bytes. */
  readonly text: string
  /** The type of a key that counts up by itself: the order in which rows were made. */
  readonly counter: string
  /** What gives the next number of the order in which threads change. */
  readonly nextChange: string
  /** What makes the source of those numbers. */
  readonly changes: ReadonlyArray<Statement>
  /**
   * Milliseconds since 1970 by the clock of the database, when the statement is executed: a transaction may have waited since
   * it began.
   */
  readonly now: string
  /** The text of a JSON array of the texts of a column, of all rows. */
  readonly texts: (column: string) => string
  /** Whether a column holds the text of the next argument somewhere. */
  readonly holds: (column: string) => string
  /** Ends a query for rows of `table` that are to be changed: they are locked, and those that others change now are left out. */
  readonly claimed: (table: string) => string
  /** Lets one at a time do what this name says, until the end of the transaction. */
  readonly alone: (name: string) => ReadonlyArray<Statement>
}

/** A transaction that writes has the whole file for itself. */
export const libSql: Dialect = {
  text: "TEXT",
  counter: "INTEGER PRIMARY KEY",
  nextChange: "(SELECT coalesce(max(change_order), 0) + 1 FROM eddy_threads)",
  changes: [],
  now: "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
  texts: column => `json_group_array(${column})`,
  holds: column => `instr(${column}, ?) > 0`,
  claimed: () => "",
  alone: () => []
}

export const postgres: Dialect = {
  text: 'TEXT COLLATE "C"',
  counter: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  // The highest number of the table would be that of another transaction too, which is not finished yet.
  nextChange: "nextval('eddy_changes')",
  changes: [statement("CREATE SEQUENCE eddy_changes")],
  now: "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)",
  texts: column => `coalesce(json_agg(${column}), '[]')::text`,
  holds: column => `strpos(${column}, ?) > 0`,
  claimed: table => `FOR UPDATE OF ${table} SKIP LOCKED`,
  alone: name => [
    statement("SELECT pg_advisory_xact_lock(hashtext(concat('eddy.', current_schema(), '.', ?::text)))", [
      name
    ])
  ]
}
