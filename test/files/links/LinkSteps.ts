import { Effect } from "effect"
import type { ShareLink } from "#schemas/files/ShareLink.ts"
import { type Answer, TestServer } from "#test/harness/TestServer.ts"
import { uploaded } from "../transfers/TransferSteps.ts"

/** The headers of a browser that goes to an address. */
export const browser = {
  accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  "user-agent":
    "Mozilla/5.0 (X11; Linux x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
}

/** Asks without a key, and follows nothing. */
export const direct = (
  token: string,
  asked: {
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly query?: string
    readonly body?: string | FormData
  } = {}
): Effect.Effect<Answer, never, TestServer> =>
  Effect.flatMap(TestServer, ({ url }) =>
    Effect.promise(async () => {
      const { body, headers = {}, method = "GET", query } = asked
      const answer = await fetch(`${url}/direct/${token}${query === undefined ? "" : `?${query}`}`, {
        method,
        headers: { accept: "*/*", ...headers },
        redirect: "manual",
        ...(body !== undefined && { body })
      })
      const bytes = new Uint8Array(await answer.arrayBuffer())
      const isJson = bytes.length > 0 && answer.headers.get("content-type") === "application/json"
      const json: unknown = isJson ? JSON.parse(new TextDecoder().decode(bytes)) : undefined
      return { status: answer.status, headers: answer.headers, bytes, json }
    })
  )

export const bodyOf = ({ bytes }: Answer): string => new TextDecoder().decode(bytes)

/** A link to a new file of these bytes. */
export const shared = Effect.fnUntraced(function* (
  key: string,
  fields: object = {},
  bytes: string | Uint8Array<ArrayBuffer> = "the bytes",
  name = "report.txt"
) {
  const { ask } = yield* TestServer
  const file = yield* uploaded([name, bytes], {}, { key })
  const answer = yield* ask("POST", "/api/share-links", { key, json: { fileId: file.fileId, ...fields } })
  if (answer.status !== 200) throw new Error(`${answer.status} ${bodyOf(answer)}`)
  return { file, link: answer.json as ShareLink }
})

/** How often a link was used, as its owner sees it. */
export const usesOf = (key: string, token: string) =>
  Effect.flatMap(TestServer, ({ ask }) =>
    Effect.map(
      ask("GET", `/api/share-links/${token}`, { key }),
      ({ json }) => (json as ShareLink | undefined)?.uses
    )
  )

/** Waits until something holds: what follows an answer is written down a moment later. */
export const until = <R>(isSo: Effect.Effect<boolean, never, R>): Effect.Effect<void, never, R> =>
  Effect.flatMap(isSo, (done) => (done ? Effect.void : Effect.andThen(Effect.sleep(20), until(isSo))))
