import { Schema } from "effect"
import { readIfThere } from "./PrivateFile.ts"

/** A small JSON file that a process keeps of itself for the next one. It can be done without. */
export type StateFile<A> =
  | { readonly _tag: "Missing" }
  /** torn, empty or of another shape: a power cut, a full disk or a restored copy */
  | { readonly _tag: "Damaged"; readonly file: string }
  | { readonly _tag: "Found"; readonly state: A }

/** Reads such a file; other trouble with it (its permissions, the disk) is thrown, with its name. */
export const readState = <A>(file: string, schema: Schema.ConstraintDecoder<A>): StateFile<A> => {
  const text = readIfThere(file)
  if (text === undefined) return { _tag: "Missing" }
  const read = Schema.decodeUnknownOption(Schema.fromJsonString(schema))(text)
  return read._tag === "None" ? { _tag: "Damaged", file } : { _tag: "Found", state: read.value }
}
