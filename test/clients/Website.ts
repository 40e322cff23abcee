import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

/** A page of the website that is counted: what its head has beside the title, and what else is answered. */
export interface Page {
  readonly head?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A website of another origin than the server that counts it, under whatever name the browser has for 127.0.0.1. */
export interface Website {
  readonly port: number
  /** puts pages in place; every other path is answered with a page that counts nothing */
  readonly put: (pages: Readonly<Record<string, Page>>) => void
  /** the paths of all requests so far */
  readonly asked: () => ReadonlyArray<string>
  /** their cookies */
  readonly cookies: () => ReadonlyArray<string>
  readonly close: () => Promise<void>
}

export const startWebsite = async (): Promise<Website> => {
  const pages = new Map<string, Page>()
  const asked: Array<string> = []
  const cookies: Array<string> = []
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://website.test").pathname
    asked.push(path)
    if (request.headers.cookie !== undefined) cookies.push(request.headers.cookie)
    const { body = "", head = "", headers = {} } = pages.get(path) ?? {}
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
