import { useEffect, useState } from "preact/hooks"
import { useSession } from "../../api/Session.ts"
import type { Upload } from "./Upload.ts"
import { UploadQueue } from "./UploadQueue.ts"

/** It outlives the pages of the room: uploads go on while other rooms are looked at. */
let present: UploadQueue | undefined

const queueOf = (userId: string): UploadQueue => {
  if (present?.userId !== userId) {
    present?.dispose()
    present = new UploadQueue(userId)
    void present.recall()
  }
  return present
}

interface Uploads {
  /** undefined without a session, by whose cookie files are sent */
  readonly queue: UploadQueue | undefined
  readonly uploads: ReadonlyArray<Upload>
}

const none: ReadonlyArray<Upload> = []

export const useUploads = (): Uploads => {
  const { ask, onSignedOut, userId } = useSession()
  const queue = userId === undefined ? undefined : queueOf(userId)
  const [uploads, setUploads] = useState(queue?.uploads ?? none)
  useEffect(() => {
    if (queue === undefined) return undefined
    const read = (): void => setUploads(queue.uploads)
    read()
    return queue.subscribe(read)
  }, [queue])
  // Another `ask` is another session of the same user.
  useEffect(() => queue?.wake(onSignedOut), [queue, ask, onSignedOut])
  return { queue, uploads }
}

const settleMillis = 1_000

/** Counts up when uploads are done: not for each of a thousand small ones. */
export const useFinished = (uploads: ReadonlyArray<Upload>): number => {
  const done = uploads.filter(({ state }) => state === "done").length
  const [seen, setSeen] = useState(done)
  useEffect(() => {
    const timer = setTimeout(() => setSeen(done), settleMillis)
    return () => clearTimeout(timer)
  }, [done])
  return seen
}
