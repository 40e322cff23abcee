import { CommandFailed } from "#src/cli/CommandFailed.ts"
import { rootOf } from "#src/cli/Connection.ts"
import { accepted, type Answer, type ByteClient, discard, Patience, type Waiting } from "./ByteClient.ts"
import type { Sink } from "./PartFile.ts"
import { lookAt, partial, type RemoteBytes, unsatisfiable } from "./RemoteBytes.ts"

interface Told extends Waiting {
  /** bytes that are there now */
  readonly onBytes: (offset: number) => void
}

/** Where the bytes of a 206 begin; undefined: nowhere that can be used. */
const startOf = (answer: Answer): number | undefined => {
  const start = /^bytes (\d+)-/.exec(answer.header("content-range"))?.[1]
  return start === undefined ? undefined : Number(start)
}

/** Writes an answer's bytes; answers why they ended too early, if they did. Throws where they cannot be written. */
const take = async (
  answer: Answer,
  sink: Sink,
  remote: RemoteBytes,
  told: Told
): Promise<string | undefined> => {
  try {
    for await (const piece of answer.body as AsyncIterable<Uint8Array>) {
      if (sink.offset + piece.length > remote.sizeBytes)
        throw new CommandFailed({ problem: "The server sent more bytes than it said" })
      await sink.write(piece)
      told.onBytes(sink.offset)
    }
  } catch (error) {
    if (error instanceof CommandFailed || told.signal.aborted) throw error
    return rootOf(error)
  }
  return sink.offset < remote.sizeBytes ? "the connection was closed" : undefined
}

/**
 * Brings all bytes that the sink has not, over any number of connections; each goes on where the one before was cut, as long as
 * the bytes are the same. Then the sink is finished. Throws `BytesFailure`.
 */
export const download = async (
  client: ByteClient,
  first: RemoteBytes,
  sink: Sink,
  told: Told
): Promise<RemoteBytes> => {
  let remote = first
  // Of a link with a cap a request without a range would be one more use.
  let isBegun = remote.isResumed || sink.offset > 0
  const patience = new Patience(remote.url, told)
  for (;;) {
    const before = sink.offset
    if (isBegun && before === remote.sizeBytes && before > 0) break
    const { etag, headers, sizeBytes, url } = remote
    const range = { range: `bytes=${before}-`, ...(etag !== "" && { "if-range": etag }) }
    const ask = (): Promise<Answer> => {
      const more = isBegun && before < sizeBytes ? range : {}
      isBegun = true
      return client.ask(
        { method: "GET", url, headers: { ...headers, "accept-encoding": "identity", ...more } },
        told.signal
      )
    }
    const answer = await accepted(ask, patience, new Set([unsatisfiable]))
    const { status } = answer
    const isSame = answer.header("etag") === remote.etag
    if (status === unsatisfiable || (status === partial && startOf(answer) !== before) || !isSame) {
      discard(answer)
      remote = await lookAt(client, remote, told)
      await sink.restart(remote)
      await patience.wait("It changes again and again")
      continue
    }
    if (status !== partial && before > 0) await sink.restart(remote)
    const cut = await take(answer, sink, remote, told)
    if (cut === undefined) break
    if (sink.offset > before) patience.progressed()
    await patience.wait(cut)
  }
  await sink.finish(remote)
  return remote
}
