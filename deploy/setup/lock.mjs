import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import process from "node:process"
import { setTimeout as sleep } from "node:timers/promises"
import { say } from "./progress.mjs"

const isAlive = (pid) => {
  // A lock with our own number is of an earlier life, in a container that counts from 1 again.
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives and belongs to another user.
    return error.code === "EPERM"
  }
}

const take = (file) => {
  try {
    writeFileSync(file, String(process.pid), { flag: "wx" })
    return true
  } catch (error) {
    if (error.code !== "EEXIST") throw error
    return false
  }
}

const holderOf = (file) => {
  try {
    return Number(readFileSync(file, "utf8"))
  } catch (error) {
    if (error.code === "ENOENT") return undefined
    throw error
  }
}

/** Removes the lock of a dead process, unless another process took it over in the meantime. */
const clear = (file, holder) => {
  const aside = `${file}.${process.pid}`
  try {
    renameSync(file, aside)
    if (holderOf(aside) !== holder) linkSync(aside, file)
  } catch (error) {
    if (error.code !== "ENOENT" && error.code !== "EEXIST") throw error
  }
  rmSync(aside, { force: true })
}

/** Runs one set-up at a time in a clone: a second one waits, and takes over from one that died. */
export const withLock = async (directory, body) => {
  mkdirSync(directory, { recursive: true })
  const file = join(directory, "setup.lock")
  for (let told = false; !take(file);) {
    const holder = holderOf(file)
    // An empty file belongs to a process between creating and writing it: it gets the next round.
    if (holder !== undefined && holder > 0 && !isAlive(holder)) clear(file, holder)
    else if (!told) {
      told = true
      say(`Another set-up of this clone is at work (process ${holder}); waiting for it`)
    }
    await sleep(200)
  }
  try {
    return await body()
  } finally {
    rmSync(file, { force: true })
  }
}
