import { execFile } from "node:child_process"
import { createHash, randomFillSync } from "node:crypto"
import { closeSync, openSync, writeSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { SeededRandom } from "#test/simulation/Seed.ts"
import { localDirectory } from "../cli/LocalDirectory.ts"
import { startCutProxy } from "./CutProxy.ts"
import { metadataOf } from "./TusClient.ts"

/** `UPLOAD_BYTES=1073741824` for a large one by hand, `SIMULATION_SEED` repeats its cuts. */
const bytes = Number(process.env["UPLOAD_BYTES"] ?? 8 * 1024 * 1024)
const seed = Number(process.env["SIMULATION_SEED"] ?? Date.now() % 1_000_000)
const message = `SIMULATION_SEED=${seed} UPLOAD_BYTES=${bytes}`

/** Asks where the upload is, and sends the rest, until the server tells the version that it has become. */
const script = `
ask() { curl -s -D - -o /dev/null -H "Authorization: Bearer $KEY" -H 'Tus-Resumable: 1.0.0' "$@" | tr -d '\\r'; }
told() { sed -n "s/^$1: //Ip"; }
while [ "$(( tries += 1 ))" -le 500 ]; do
  answer=$(ask -I "$UPLOAD")
  version=$(printf '%s\\n' "$answer" | told upload-file-id)
  if [ -n "$version" ]; then echo "$version"; exit 0; fi
  offset=$(printf '%s\\n' "$answer" | told upload-offset)
  [ -n "$offset" ] || continue
  tail -c "+$(( offset + 1 ))" "$FILE" | ask -X PATCH -H "Upload-Offset: $offset" \\
    -H 'Content-Type: application/offset+octet-stream' -H "Content-Length: $(( SIZE - offset ))" -H 'Transfer-Encoding:' \\
    -H 'Expect:' -T - "$UPLOAD" >/dev/null
done
exit 1
`

/** A file of random bytes, and its SHA-256. */
const written = (path: string): string => {
  const piece = Buffer.alloc(Math.min(bytes, 16 * 1024 * 1024))
  const hash = createHash("sha256")
  const file = openSync(path, "w")
  for (let left = bytes; left > 0; left -= piece.length) {
    const some = randomFillSync(piece).subarray(0, left)
    hash.update(some)
    writeSync(file, some)
  }
  closeSync(file)
  return hash.digest("hex")
}

layer(TestServer.shared, { excludeTestServices: true, timeout: 600_000 })("a script of curl", (it) => {
  it.effect(
    "uploads by HEAD and PATCH through a proxy that cuts every connection, and sends nothing twice",
    () =>
      Effect.gen(function* () {
        const { ask, makeUser, server } = yield* TestServer
        const { key } = yield* makeUser()
        const path = join(yield* localDirectory, "long.bin")
        const sha256 = written(path)
        const random = new SeededRandom(seed)
        const proxy = yield* Effect.acquireRelease(
          Effect.promise(() => startCutProxy(server.url, () => 1 + random.below(bytes / 8))),
          ({ close }) => Effect.promise(close)
        )
        const begun = yield* ask("POST", "/api/uploads", {
          key,
          headers: {
            "tus-resumable": "1.0.0",
            "upload-length": String(bytes),
            "upload-metadata": metadataOf({ filename: "by curl.bin", sha256 })
          }
        })
        const { stdout } = yield* Effect.promise(() =>
          promisify(execFile)("sh", ["-c", script], {
            env: {
              PATH: process.env["PATH"] ?? "",
              KEY: key,
              FILE: path,
              SIZE: String(bytes),
              UPLOAD: `${proxy.url}${begun.headers.get("location")}`
            }
          })
        )
        const { json } = yield* ask("GET", `/api/files/${stdout.trim()}/versions`, { key })
        const { versions } = json as { readonly versions: ReadonlyArray<{ readonly fileHash: string }> }
        assert.deepInclude(versions[0], { fileHash: sha256 }, message)
        assert.isAbove(proxy.cuts(), 3, message)
        // Heads of requests come on top, and on a busy machine bytes in flight that came too late for the server.
        assert.isBelow(proxy.forwarded() - bytes, 32 * 1024 * proxy.connections(), message)
      }).pipe(Effect.scoped)
  )
})
