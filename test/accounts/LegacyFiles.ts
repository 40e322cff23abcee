import { Effect } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { newId } from "#src/infra/crypto/Tokens.ts"

/** An account file as it was kept before there were blobs: a row, and `DATA_DIR/files/<end of the id>/<id>`. */
export const legacyFile = Effect.fnUntraced(function* (dataDir: string, userId: string, text: string) {
  const sql = yield* SqlClient
  const id = newId("fil")
  const bytes = Buffer.from(text)
  const sha256 = createHash("sha256").update(bytes).digest()
  const folder = join(dataDir, "files", id.slice(-2))
  mkdirSync(folder, { recursive: true })
  const path = join(folder, id)
  writeFileSync(path, bytes)
  yield* sql`INSERT INTO files (id, user_id, filename, content_type, size, sha256)
    VALUES (${id}, ${userId}, 'a.txt', 'text/plain', ${bytes.length}, ${sha256})`
  return { id, path, sha256: sha256.toString("hex"), size: bytes.length }
})
