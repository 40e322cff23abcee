import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Conflict } from "#schemas/core/Problem.ts"
import { utf8Bytes } from "#schemas/files/Names.ts"

export const nameTaken = Conflict.of("name: is taken", { code: "name_taken", param: "name" })

const bytesMost = 255

/** Numbers that are tried by one look, and in all. */
const atOnce = 50
const most = 1_000

/** A name with a number before its extension: `may (2).pdf`. */
export const numbered = (name: string, number: number): string => {
  const dot = name.lastIndexOf(".")
  const extension = dot > 0 && utf8Bytes(name.slice(dot)) < 100 ? name.slice(dot) : ""
  const end = ` (${number})${extension}`
  let stem = Array.from(name.slice(0, name.length - extension.length))
  while (utf8Bytes(stem.join("") + end) > bytesMost) stem = stem.slice(0, -1)
  return stem.join("") + end
}

/** The same for a bucket, whose names have fewer characters: `may-2`. */
const numberedBucket = (name: string, number: number): string =>
  `${name.slice(0, 100 - `-${number}`.length)}-${number}`

/** The first of the numbered names that is not taken; `takenOf` says which of some are. */
export const freeName = (
  name: string,
  takenOf: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>,
  isBucket = false
): Effect.Effect<string, Conflict | SqlError> =>
  Effect.gen(function* () {
    for (let from = 1; from <= most; from += atOnce) {
      const names = Array.from({ length: atOnce }, (_, index) =>
        (isBucket ? numberedBucket : numbered)(name, from + index)
      )
      const taken = new Set(yield* takenOf(names))
      const free = names.find((candidate) => !taken.has(candidate))
      if (free !== undefined) return free
    }
    return yield* nameTaken
  })
