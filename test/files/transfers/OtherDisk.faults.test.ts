import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { SharedLink } from "#schemas/files/ShareLink.ts"
import type { UploadedFile } from "#schemas/files/UploadedFile.ts"
import { FirstBoot } from "#src/accounts/FirstBoot.ts"
import { fileServers } from "#test/accounts/FileServer.ts"
import { ask } from "#test/harness/ApiClient.ts"
import { TestStores } from "#test/harness/TestStores.ts"
import { TusClient } from "../uploads/TusClient.ts"
import { formOf, sha256Of } from "./TransferSteps.ts"

const elsewhere = (whose: string) => ({
  error: `${whose} bytes are not on this server's disk; another server has them`
})

const short = "some bytes"
const long = "many bytes ".repeat(10_000)

layer(FirstBoot.layer.pipe(Layer.provideMerge(TestStores.layer)), {
  excludeTestServices: true
})("bytes on the disk of another server", (it) => {
  it.effect("are 503 here, count nothing, and are there as before", () =>
    Effect.gen(function* () {
      const { newAdminKey = "" } = yield* FirstBoot
      const { dataDir, databaseUrl } = yield* TestStores
      const sides = yield* fileServers(
        ["there", "here"].map((name) => ({
          databaseUrl,
          dataDir: join(dataDir, name),
          blobsDirectory: join(dataDir, name, "blobs")
        }))
      )
      yield* Effect.promise(async () => {
        const [there, here] = await Promise.all(
          sides.map(async (side) => ({ url: await side.start(), adminKey: () => newAdminKey }))
        )
        if (there === undefined || here === undefined) return assert.fail("no servers")
        const send = async (at: typeof here): Promise<ReadonlyArray<UploadedFile>> => {
          const form = formOf([
            ["short", short],
            ["long", long]
          ])
          const { body } = await ask(at, "POST", "/api/upload", { form })
          return (body as { readonly files: ReadonlyArray<UploadedFile> }).files
        }
        const files = await send(there)
        const read = async (at: typeof here, path: string) => {
          const headers = { authorization: `Bearer ${newAdminKey}` }
          const answer = await fetch(at.url + path, { headers })
          return { status: answer.status, text: await answer.text() }
        }
        const refused = { status: 503, text: "" }
        for (const { directoryId, fileHash, fileId } of files) {
          assert.deepStrictEqual(await read(here, `/api/files/${fileId}`), refused)
          assert.deepStrictEqual(await read(here, `/api/download/${directoryId}`), refused)
          const json = { name: "a copy" }
          const copied = await ask(here, "POST", `/api/files/${fileId}/copy`, { json })
          assert.deepStrictEqual([copied.status, copied.body], [503, elsewhere("The file's")])

          const made = await ask(here, "POST", "/api/share-links", { json: { fileId, maxRequests: 1 } })
          const link = made.body as SharedLink
          const { status } = await read(here, `/direct/${link.token}`)
          const { body } = await ask(here, "GET", `/api/share-links/${link.token}`)
          assert.deepStrictEqual([status, (body as SharedLink).uses], [503, 0])
          for (const path of [`/api/files/${fileId}`, `/direct/${link.token}`]) {
            const seen = await read(there, path)
            assert.deepStrictEqual([seen.status, sha256Of(seen.text)], [200, fileHash])
          }
        }

        const tus = new TusClient(there, newAdminKey)
        const path = await tus.begin(20, { filename: "a" })
        assert.strictEqual((await tus.patch(path, 0, "0123456789")).status, 204)
        const other = await new TusClient(here, newAdminKey).patch(path, 10, "0123456789")
        assert.deepStrictEqual([other.status, other.body], [503, elsewhere("The upload's")])
        assert.strictEqual((await tus.patch(path, 10, "0123456789")).status, 204)

        // The same bytes that come here are here, too.
        for (const { fileHash, fileId } of await send(here)) {
          const seen = await read(here, `/api/files/${fileId}`)
          assert.deepStrictEqual([seen.status, sha256Of(seen.text)], [200, fileHash])
        }
      })
    }).pipe(Effect.scoped)
  )
})
