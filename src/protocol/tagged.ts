/** What every error of the library is made with. */
import * as Data from "effect/Data"
import * as Predicate from "effect/Predicate"

const mark = Symbol.for("eddy/Error")

/** Whether an error is one of the library: its message is written to be read, and its fields are for programs. */
export const isOfLibrary = (error: unknown): boolean => Predicate.hasProperty(error, mark)

/** Its JSON is what a client may read: whoever prints a chunk prints no cause, which may hold a request and its headers. */
export const tagged = <Tag extends string>(tag: Tag) => {
  const Tagged = Data.TaggedError(tag)
  Object.defineProperty(Tagged.prototype, mark, { value: true })
  Object.defineProperty(Tagged.prototype, "toJSON", {
    value(this: Error) {
      return { name: this.name, message: this.message }
    }
  })
  return Tagged
}
