import type { ServerProcess } from "./ServerProcess.ts"

/** The parts of a server that a request needs, in a process of its own or inside the test's. */
export type Reachable = Pick<ServerProcess, "url" | "adminKey">

/** A server whose events a test reads where they are stored. */
export type Counting = Reachable & Pick<ServerProcess, "clickhouseUrl">

export interface Answer {
  readonly status: number
  readonly headers: Headers
  /** the decoded JSON body; undefined when it is empty or not JSON */
  readonly body: unknown
}

export interface Asked {
  readonly key?: string
  readonly json?: unknown
  readonly form?: FormData
  /** a body as it is, with headers as they are */
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
}

/** One request to a running server, with the admin's key unless another (or "") is given. */
export const ask = async (
  server: Reachable,
  method: string,
  path: string,
  asked: Asked = {}
): Promise<Answer> => {
  const key = asked.key ?? server.adminKey()
  const response = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
      ...(asked.json === undefined ? {} : { "content-type": "application/json" }),
      ...asked.headers
    },
    body: asked.json === undefined ? (asked.body ?? asked.form ?? null) : JSON.stringify(asked.json)
  })
  const text = await response.text()
  const isJson = text !== "" && response.headers.get("content-type")?.startsWith("application/json") === true
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : undefined }
}

/** The text at a path of an answer's body, as in `textAt(answer, "site", "id")`; fails where there is none. */
export const textAt = (answer: Answer, ...path: ReadonlyArray<string>): string => {
  let value: unknown = answer.body
  for (const name of path) value = (value as Record<string, unknown> | undefined)?.[name]
  if (typeof value !== "string") {
    throw new Error(`no text at ${path.join(".")} of ${answer.status} ${JSON.stringify(answer.body)}`)
  }
  return value
}

export interface TestSite {
  readonly id: string
  readonly secret: string
}

export const createSite = async (
  server: Reachable,
  domain = "example.com",
  key = server.adminKey()
): Promise<TestSite> => {
  const answer = await ask(server, "POST", "/api/v1/sites", { key, json: { name: "Test", domain } })
  return { id: textAt(answer, "site", "id"), secret: textAt(answer, "secret") }
}
