import { createServer, request as ask } from "node:http"
import type { AddressInfo } from "node:net"

/** A page of the counted website: its head beside the title, and its other answers. */
export interface Page {
  readonly head?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
  /** the address to which the website's proxy passes requests of this path on */
  readonly passesTo?: string
}

/** A website of another origin than the server that counts it, under the browser's name for 127.0.0.1. */
export interface Website {
  readonly port: number
  /** puts pages in place; every other path is answered with a page that counts nothing */
  readonly put: (pages: Readonly<Record<string, Page>>) => void
  /** the paths of all requests so far */
  readonly asked: () => ReadonlyArray<string>
  /** those of them that had cookies */
  readonly cookies: () => ReadonlyArray<{ readonly path: string; readonly cookie: string }>
  readonly close: () => Promise<void>
}

export const startWebsite = async (): Promise<Website> => {
  const pages = new Map<string, Page>()
  const asked: Array<string> = []
  const cookies: Array<{ readonly path: string; readonly cookie: string }> = []
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://website.test").pathname
    asked.push(path)
    const { cookie } = request.headers
    if (cookie !== undefined) cookies.push({ path, cookie })
    const { body = "", head = "", headers = {}, passesTo } = pages.get(path) ?? {}
    if (passesTo !== undefined) {
      const passed = { "user-agent": request.headers["user-agent"] ?? "" }
      const onward = ask(passesTo, { method: request.method, headers: passed }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      onward.on("error", () => response.destroy())
      request.pipe(onward)
      return
    }
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", ...headers })
    // An icon of its own, so that the browser asks for none.
    response.end(`<!doctype html><title>${path}</title><link rel="icon" href="data:,">${head}<body>${body}`)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    put: (added) => {
      for (const [path, page] of Object.entries(added)) pages.set(path, page)
    },
    asked: () => asked,
    cookies: () => cookies,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
  }
}
