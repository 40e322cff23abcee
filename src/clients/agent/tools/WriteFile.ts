import { randomBytes } from "node:crypto"
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
  type Stats
} from "node:fs"
import { promisify } from "node:util"
import type { WriteParams, WriteResult } from "#schemas/agents/ToolCall.ts"
import { locate, requireRegular, statOf, type Place, type Workspace } from "../boundary/Walk.ts"
import { partsOf, shown } from "../boundary/WorkspacePath.ts"
import { denied, systemCode, ToolFailure } from "./ToolFailure.ts"
import { askForHardLink, askForSelfRunning, requireAsked, type AskWrite } from "./WriteQuestion.ts"

const synced = promisify(fsync)

/** Rights, owner and group of the file that is replaced; never set-user-id, which was given to other contents. */
const keepOwner = (fd: number, before: Stats, path: string): void => {
  const now = fstatSync(fd)
  try {
    if (now.uid !== before.uid || now.gid !== before.gid) fchownSync(fd, before.uid, before.gid)
    fchmodSync(fd, before.mode & 0o777)
  } catch (error) {
    if (systemCode(error) === "EPERM") throw denied(`${path} belongs to another user`)
    throw error
  }
}

const writeAll = (fd: number, bytes: Buffer): void => {
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
}

/**
 * Puts a whole file in the place of what is there: a reader sees the old or the new one, also after a crash. The file is
 * made beside it in the directory that is held, so the name that is replaced cannot lead elsewhere.
 */
export const replaceFile = async ({ directory, name }: Place, bytes: Buffer): Promise<void> => {
  const path = shown([...directory.parts, name])
  const before = statOf({ directory, name })
  if (before !== undefined) {
    requireRegular(before, [...directory.parts, name])
    if ((before.mode & 0o222) === 0) throw denied(`${path} is read-only`)
  }
  const temporary = directory.at(`.signalbox-${randomBytes(8).toString("hex")}.tmp`)
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
  const fd = openSync(
    temporary,
    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
    before === undefined ? 0o666 : 0o600
  )
  try {
    writeAll(fd, bytes)
    if (before !== undefined) keepOwner(fd, before, path)
    await synced(fd)
    directory.verify()
    renameSync(temporary, directory.at(name))
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
  await synced(directory.fd)
}

/** fs.write. */
export const writeFile = async (
  workspace: Workspace,
  { path, content }: typeof WriteParams.Type,
  ask: AskWrite
): Promise<typeof WriteResult.Type> => {
  const parts = partsOf(workspace.jail.root, path)
  if (parts.length === 0)
    throw new ToolFailure("invalid_params", `${path} is the workspace itself, not a file`)
  const allowed = await askForSelfRunning(workspace, path, ask)
  const place = locate(workspace, parts, "write")
  try {
    requireAsked(workspace, place, allowed)
    await askForHardLink(place, ask)
    const created = statOf(place) === undefined
    const bytes = Buffer.from(content)
    await replaceFile(place, bytes)
    return { bytes: bytes.length, created }
  } finally {
    place.directory.close()
  }
}
