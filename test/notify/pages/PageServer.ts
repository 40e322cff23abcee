import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { iconPath, type NotifyPage, styleAnswer, stylePath } from "#src/notify/pages/NotifyPage.ts"

/** An answer other than a page. */
export interface ServedBytes {
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
}

/** Pages as they go out, at addresses of their own, with the style of the room. */
export interface PageServer {
  readonly url: string
  /** by path, without its query */
  readonly answers: Map<string, NotifyPage | ServedBytes>
  /** paths that were asked for */
  readonly asked: Array<string>
  readonly close: () => Promise<void>
}

export const startPageServer = async (): Promise<PageServer> => {
  const answers = new Map<string, NotifyPage | ServedBytes>()
  const asked: Array<string> = []
  const style = HttpServerResponse.toWeb(
    styleAnswer()(HttpServerRequest.fromWeb(new Request(`http://localhost${stylePath}`)))
  )
  answers.set(stylePath, {
    contentType: "text/css; charset=utf-8",
    headers: Object.fromEntries(style.headers),
    bytes: new Uint8Array(await style.arrayBuffer())
  })
  const server = createServer(({ url = "/" }, response) => {
    // Browsers ask for it by themselves.
    if (url === iconPath) return void response.writeHead(204).end()
    asked.push(url)
    const answer = answers.get(url.split("?")[0] ?? "")
    if (answer === undefined) return void response.writeHead(404).end()
    const { contentType, headers } = answer
    response.writeHead("status" in answer ? answer.status : 200, { ...headers, "content-type": contentType })
    return void response.end("text" in answer ? answer.text : answer.bytes)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    answers,
    asked,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }
}
