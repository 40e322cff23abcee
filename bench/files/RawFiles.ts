import { createHash } from "node:crypto"
import { close, closeSync, fdatasync, fstatSync, open, openSync, read, write } from "node:fs"
import { join } from "node:path"
import { serveForked } from "#bench/harness/ForkedServer.ts"
import type { UwsResponse } from "#src/front/uws/Addon.ts"

/** The limit: files by two blocks over uWebSockets.js alone, without keys, ranges, rows or bad clients. */

const blockBytes = 1024 * 1024

/** One block is read while the other is sent. */
const sendFile = (response: UwsResponse, path: string): void => {
  const fd = openSync(path, "r")
  const { size } = fstatSync(fd)
  const blocks = [Buffer.allocUnsafeSlow(blockBytes), Buffer.allocUnsafeSlow(blockBytes)]
  const filled: Array<{ readonly bytes: Buffer; readonly at: number; readonly count: number }> = []
  let readTo = 0
  let isReading = false
  let isOver = false
  const finish = (): void => {
    isOver = true
    if (!isReading) closeSync(fd)
  }
  const fill = (): void => {
    const bytes = blocks[(readTo / blockBytes) & 1]
    if (isReading || isOver || readTo >= size || filled.length > 1 || bytes === undefined) return
    isReading = true
    read(fd, bytes, 0, blockBytes, readTo, (error, count) => {
      isReading = false
      if (isOver || error !== null) return closeSync(fd)
      filled.push({ bytes, at: readTo, count })
      readTo += count
      fill()
      send()
    })
  }
  const send = (): void => {
    for (let block = filled[0]; block !== undefined; block = filled[0]) {
      const part = block.bytes.subarray(response.getWriteOffset() - block.at, block.count)
      let [isTaken, isDone] = [false, false]
      response.cork(() => {
        ;[isTaken, isDone] = response.tryEnd(part, size)
      })
      if (isDone) return finish()
      if (!isTaken) return
      filled.shift()
      fill()
    }
  }
  response.onAborted(finish)
  response.onWritable(() => {
    send()
    return true
  })
  fill()
}

/** Hashes on the main thread, writes a block while the other is gathered, and answers when all is on the disk. */
const receiveFile = (response: UwsResponse, path: string): void => {
  const fd = openSync(path, "w")
  const hash = createHash("sha256")
  const blocks = [Buffer.allocUnsafeSlow(blockBytes), Buffer.allocUnsafeSlow(blockBytes)]
  let [block = Buffer.alloc(0), other = Buffer.alloc(0)] = blocks
  let filledBytes = 0
  let isWriting = false
  let isWhole = false
  const waiting: Array<Buffer> = []
  const gather = (): void => {
    for (;;) {
      if (isWriting && filledBytes === blockBytes) break
      const next = waiting.shift()
      if (next === undefined) break
      const count = next.copy(block, filledBytes)
      filledBytes += count
      if (count < next.length) waiting.unshift(next.subarray(count))
      if (filledBytes === blockBytes && !isWriting) flush()
    }
    if (waiting.length === 0) {
      if (isWhole && !isWriting) end()
      else response.resume()
    }
  }
  const flush = (): void => {
    const [full, count] = [block, filledBytes]
    ;[block, other] = [other, block]
    filledBytes = 0
    isWriting = true
    write(fd, full, 0, count, null, () => {
      isWriting = false
      gather()
    })
  }
  const end = (): void => {
    if (filledBytes > 0) return flush()
    fdatasync(fd, () => close(fd, () => response.cork(() => response.end(hash.digest("hex")))))
  }
  response.onAborted(() => closeSync(fd))
  response.onData((chunk, isLast) => {
    const bytes = Buffer.from(Buffer.from(chunk))
    hash.update(bytes)
    waiting.push(bytes)
    isWhole = isLast
    response.pause()
    gather()
  })
}

/** A file that comes in one piece: written, on the disk, answered. */
const receiveSmall = (response: UwsResponse, path: string): void => {
  let isAborted = false
  response.onAborted(() => (isAborted = true))
  const answer = (): void => {
    if (!isAborted) response.cork(() => response.end())
  }
  const pieces: Array<Buffer> = []
  response.onData((chunk, isLast) => {
    pieces.push(Buffer.from(Buffer.from(chunk)))
    if (!isLast) return
    open(path, "w", (_, fd) => write(fd, Buffer.concat(pieces), () => fdatasync(fd, () => close(fd, answer))))
  })
}

if (process.argv[1] === import.meta.filename) {
  const directory = process.argv[2] ?? ""
  serveForked((app) => {
    app.get("/large", (response) => sendFile(response, join(directory, "large")))
    app.get("/small", (response) => sendFile(response, join(directory, "small")))
    // A new file each time, as ours are: blocks of a file that is written again are at hand already.
    let uploads = 0
    app.post("/small-upload", (response) => receiveSmall(response, join(directory, `upload-${uploads++}`)))
    app.post("/upload", (response) => receiveFile(response, join(directory, `upload-${uploads++}`)))
  })
}
