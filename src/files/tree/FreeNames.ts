import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Conflict } from "#schemas/core/Problem.ts"
import { numberedName } from "#streams/files/NumberedName.ts"

export const nameTaken = Conflict.of("name: is taken", { code: "name_taken", param: "name" })

/** Numbers that are tried by one look, and in all. */
const atOnce = 50
const most = 1_000

/** Names of buckets have fewer characters: `may-2`. */
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
        (isBucket ? numberedBucket : numberedName)(name, from + index)
      )
      const taken = new Set(yield* takenOf(names))
      const free = names.find((candidate) => !taken.has(candidate))
      if (free !== undefined) return free
    }
    return yield* nameTaken
  })
