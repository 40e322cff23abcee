import { Context, Effect, Latch, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { AppConfig } from "#src/Config.ts"
import { Notices } from "#src/infra/notices/Notices.ts"
import { linksRevoked } from "./ShareLinks.ts"

/** Ends answers under way with their link, which its owner has revoked. Source: contract/files#links. */
export class LinkWatch extends Context.Service<
  LinkWatch,
  {
    /** Calls `onEnd` once when the link of this hash is gone, unless the function that it answers was called before. */
    readonly watch: (hash: Uint8Array, onEnd: () => void) => () => void
  }
>()("signalbox/files/LinkWatch") {
  static readonly layer = Layer.effect(
    LinkWatch,
    Effect.gen(function* () {
      const sql = yield* SqlClient
      const notices = yield* Notices
      const { limits } = yield* AppConfig
      const watched = new Map<string, Set<() => void>>()
      const news = yield* Latch.make(false)
      yield* notices.subscribe(linksRevoked, () => void news.openUnsafe())

      const look = Effect.gen(function* () {
        const names = [...watched.keys()]
        if (names.length === 0) return
        const there = yield* sql<{ name: string }>`SELECT encode(l.token_hash, 'hex') AS name
          FROM unnest(${names}::text[]) AS n (name) JOIN share_links l ON l.token_hash = decode(n.name, 'hex')
          JOIN users u ON u.id = l.user_id AND u.deleted_at IS NULL`
        const live = new Set(there.map(({ name }) => name))
        for (const name of names) {
          if (live.has(name)) continue
          const ends = watched.get(name) ?? []
          watched.delete(name)
          for (const end of ends) end()
        }
      })
      // Where Postgres is away nothing can be revoked, and `/readyz` says so.
      const turn = Effect.timeoutOption(news.await, limits.linkWatchMillis).pipe(
        Effect.andThen(news.close),
        Effect.andThen(look),
        Effect.catch((error) =>
          Effect.andThen(
            Effect.logDebug("revoked links were not looked for", error),
            Effect.sleep(limits.linkWatchMillis)
          )
        )
      )
      yield* Effect.forkScoped(Effect.forever(turn))

      return LinkWatch.of({
        watch: (hash, onEnd) => {
          const name = Buffer.from(hash).toString("hex")
          // A new function each time: callers may give the same one twice.
          const listener = () => onEnd()
          const listeners = watched.get(name) ?? new Set()
          watched.set(name, listeners.add(listener))
          return () => {
            listeners.delete(listener)
            if (listeners.size === 0 && watched.get(name) === listeners) watched.delete(name)
          }
        }
      })
    })
  )
}
