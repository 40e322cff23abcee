import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { type Answer, type Asked, TestServer } from "#test/harness/TestServer.ts"
import { treeLayer } from "./TreeSteps.ts"

/** The worker's server, and its tree to put files into. */
export const sharedTree = treeLayer.pipe(Layer.provideMerge(TestServer.shared))

interface Shown {
  readonly id: string
  readonly name: string
  readonly path: string
}

export interface ShownDirectory extends Shown {
  readonly parentId: string | null
}

export interface ShownFile extends Shown {
  readonly versionGroupId: string
  readonly directoryId: string
  readonly version: number
  readonly fileHash: string
}

export interface ShownPage {
  readonly directory: ShownDirectory | null
  readonly directories: ReadonlyArray<ShownDirectory>
  readonly files: ReadonlyArray<ShownFile>
  readonly cursor: string | null
}

export interface ShownTrash {
  readonly items: ReadonlyArray<Shown & { readonly itemId: string; readonly size: number }>
  readonly cursor: string | null
}

export const expectStatus = (answer: Answer, status: number): Answer => {
  assert.strictEqual(answer.status, status, JSON.stringify(answer.json))
  return answer
}

/** A status, and the text of the error if it is one. */
export const outcomeOf = ({ json, status }: Answer): string =>
  status < 400 ? String(status) : `${status} ${(json as { readonly error: string }).error}`

/** A new user, and requests in their name. */
export const newClient = Effect.gen(function* () {
  const { ask, makeKey, makeUser } = yield* TestServer
  const { id: userId, key } = yield* makeUser()
  const send = (method: string, path: string, json?: object, asked: Asked = {}) =>
    ask(method, `/api/${path}`, { key, ...asked, ...(json !== undefined && { json }) })
  const ok = (method: string, path: string, json?: object) =>
    Effect.map(send(method, path, json), (answer) => {
      assert.isBelow(answer.status, 300, JSON.stringify(answer.json))
      return answer.json
    })
  return {
    userId,
    key,
    send,
    ok,
    outcome: (method: string, path: string, json?: object, asked?: Asked) =>
      Effect.map(send(method, path, json, asked), outcomeOf),
    makeDirectory: (name: string, parentId?: string) =>
      Effect.map(
        ok("POST", "directories", { name, ...(parentId !== undefined && { parentId }) }),
        (json) => json as ShownDirectory
      ),
    page: (id: string, query = "") =>
      Effect.map(ok("GET", `directories/${id}${query}`), (json) => json as ShownPage),
    trash: Effect.map(ok("GET", "trash"), (json) => json as ShownTrash),
    /** another key of theirs, of these scopes */
    scoped: (...scopes: ReadonlyArray<string>) =>
      Effect.map(makeKey({ scopes }, key), (made) => ({ key: made.key }))
  }
})

export type TreeClient = Effect.Success<typeof newClient>

export const namesOf = (shown: ReadonlyArray<{ readonly name: string }>) => shown.map(({ name }) => name)
