import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** The form of a name: that of its noun, such as "session-cookies". Names are constants of the program, so there are few. */
const namePattern = /^[a-z][a-z0-9-]{0,62}$/

/** Keys of this installation for signatures and ciphers, such as those of links and cookies: the same for all processes. */
export class Secrets extends Context.Service<
  Secrets,
  {
    /**
     * 32 random bytes, made when they are first asked for, and kept in Postgres and in memory. Within a transaction they
     * are made by that one, and go with it when it is rolled back.
     */
    readonly of: (name: string) => Effect.Effect<Uint8Array, SqlError>
  }
>()("signalbox/Secrets") {
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const known = new Map<string, Uint8Array>()

      // Postgres draws the bytes: a parameter could be in its log of slow statements, or in an error. A UUID has 122 bits
      // of the system's random source.
      const make = (name: string) => sql`INSERT INTO secrets (name, bytes)
        VALUES (${name}, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())))
        ON CONFLICT DO NOTHING`

      const read = Effect.fnUntraced(function* (name: string) {
        yield* make(name)
        // A second statement: the first one does not see a row that another process has just made.
        const [row] = yield* sql<{ bytes: Uint8Array }>`SELECT bytes FROM secrets WHERE name = ${name}`
        if (row === undefined) return yield* Effect.die(new Error(`the secret ${name} was deleted`))
        yield* sql.afterCommit(Effect.sync(() => void known.set(name, row.bytes)))
        return row.bytes
      })

      return Secrets.of({
        of: (name) =>
          Effect.suspend(() => {
            if (!namePattern.test(name))
              return Effect.die(new Error(`${JSON.stringify(name)} names no secret`))
            const bytes = known.get(name)
            return bytes === undefined ? read(name) : Effect.succeed(bytes)
          })
      })
    })
  )
}
