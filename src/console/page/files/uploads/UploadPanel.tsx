import { useEffect, useRef, useState } from "preact/hooks"
import { formatCounted, formatDuration, formatShare } from "../../figures/Format.ts"
import { formatBytes } from "../Words.ts"
import { ChooseFiles } from "./ChooseFiles.tsx"
import type { Choice } from "./Chosen.ts"
import { isMoving, nameOf, type Upload } from "./Upload.ts"
import type { UploadQueue } from "./UploadQueue.ts"

interface UploadPanelProps {
  readonly queue: UploadQueue
  readonly uploads: ReadonlyArray<Upload>
}

/** Rows at a time: a dropped folder may have thousands of files. */
const shownRows = 20

/** The files on their way: each, and all together. */
export const UploadPanel = ({ queue, uploads }: UploadPanelProps) => {
  if (uploads.length === 0) return null
  const missing = uploads.filter(({ state }) => state === "missing")
  const isOver = uploads.every(({ state }) => state === "done")
  return (
    <section class="uploads" aria-labelledby="uploads-title">
      <div class="uploads-head">
        <h2 id="uploads-title">Uploads</h2>
        <AllActions queue={queue} uploads={uploads} />
      </div>
      {missing.length > 0 && <Missing queue={queue} missing={missing} />}
      <Total uploads={uploads} />
      {!isOver && <Rows queue={queue} uploads={uploads} />}
    </section>
  )
}

const AllActions = ({ queue, uploads }: UploadPanelProps) => {
  const moving = uploads.filter(isMoving)
  const stopped = uploads.filter(({ state }) => state === "paused" || state === "failed")
  const open = uploads.filter(({ state }) => state !== "done")
  return (
    <div class="buttons">
      {moving.length > 0 && (
        <button type="button" class="small" onClick={() => moving.forEach((one) => queue.pause(one))}>
          Pause all
        </button>
      )}
      {stopped.length > 0 && (
        <button type="button" class="small" onClick={() => stopped.forEach((one) => queue.resume(one))}>
          Go on with all
        </button>
      )}
      {open.length > 0 && (
        <button type="button" class="small" onClick={() => open.forEach((one) => queue.cancel(one))}>
          Cancel all
        </button>
      )}
      {open.length === 0 && (
        <button type="button" class="small" onClick={() => queue.clear()}>
          Clear the list
        </button>
      )}
    </div>
  )
}

interface MissingProps {
  readonly queue: UploadQueue
  readonly missing: ReadonlyArray<Upload>
}

/** After a reload: the server has a part of these files, and the page has to be given them again. */
const Missing = ({ missing, queue }: MissingProps) => {
  const [isNone, setNone] = useState(false)
  const canGoOn = queue.canAsk
  const onChosen = ({ files }: Choice): void => setNone(queue.addAgain(files) === 0)
  return (
    <div class="waiting uploads-missing" role="status">
      <p>
        {formatCounted(missing.length, "file")} {missing.length === 1 ? "was" : "were"} on the way when this
        page was left.{" "}
        {canGoOn
          ? "The browser asks for leave to read them again, and they go on from where they were."
          : `A page cannot keep files over a reload: choose ${missing.length === 1 ? "it" : "them, or their folder,"} again, and what was sent already is not sent again.`}
      </p>
      <div class="buttons">
        {canGoOn && (
          <button type="button" class="primary" onClick={() => void queue.goOn()}>
            Go on
          </button>
        )}
        <ChooseFiles files="Choose files again" folder="Choose the folder again" onChosen={onChosen} />
      </div>
      <p class="problem" role="alert">
        {isNone ? "None of these is a file that was on its way: names, sizes and times differ." : ""}
      </p>
    </div>
  )
}

const sizeOf = (uploads: ReadonlyArray<Upload>): number => uploads.reduce((sum, { size }) => sum + size, 0)
const sentOf = (uploads: ReadonlyArray<Upload>): number => uploads.reduce((sum, { sent }) => sum + sent, 0)

/** Bytes a second of the last seconds; undefined until there is something to tell. */
const useSpeed = (sent: number): number | undefined => {
  const marks = useRef<Array<{ readonly at: number; readonly sent: number }>>([])
  const [speed, setSpeed] = useState<number>()
  const latest = useRef(sent)
  latest.current = sent
  useEffect(() => {
    const timer = setInterval(() => {
      marks.current = [...marks.current.slice(-8), { at: performance.now(), sent: latest.current }]
      const [first] = marks.current
      const last = marks.current.at(-1)
      if (first === undefined || last === undefined || last.at === first.at) return
      setSpeed(((last.sent - first.sent) / (last.at - first.at)) * 1000)
    }, 1_000)
    return () => clearInterval(timer)
  }, [])
  return speed
}

const Total = ({ uploads }: { readonly uploads: ReadonlyArray<Upload> }) => {
  const size = sizeOf(uploads)
  const sent = sentOf(uploads)
  const done = uploads.filter(({ state }) => state === "done").length
  const failed = uploads.filter(({ state }) => state === "failed").length
  const isOver = done === uploads.length
  const speed = useSpeed(sent)
  const left =
    speed !== undefined && speed > 0 && uploads.some(isMoving)
      ? ` · ${formatBytes(speed)} a second · ${formatDuration((size - sent) / speed)} left`
      : ""
  return (
    <div class="uploads-total">
      <progress aria-label="All uploads" max={Math.max(size, 1)} value={size === 0 ? 1 : sent} />
      <p class="hint">
        {done} of {formatCounted(uploads.length, "file")} · {formatBytes(sent)} of {formatBytes(size)}
        {left}
      </p>
      <p role="status">
        {isOver && `${formatCounted(done, "file")} uploaded, ${formatBytes(size)}.`}
        {failed > 0 && `${formatCounted(failed, "file")} failed.`}
      </p>
    </div>
  )
}

const Rows = ({ queue, uploads }: UploadPanelProps) => {
  const rank = ({ state }: Upload): number =>
    ["failed", "sending", "held", "missing", "paused", "waiting", "done"].indexOf(state)
  const open = uploads.filter(({ state }) => state !== "done").sort((a, b) => rank(a) - rank(b))
  const more = open.length - shownRows
  return (
    <>
      <ul aria-label="Files on their way">
        {open.slice(0, shownRows).map((upload) => (
          <Row key={upload.id} queue={queue} upload={upload} />
        ))}
      </ul>
      {more > 0 && <p class="hint">{formatCounted(more, "file")} more.</p>}
    </>
  )
}

const Row = ({ queue, upload }: { readonly queue: UploadQueue; readonly upload: Upload }) => {
  const { path, sent, size, state } = upload
  const name = nameOf(upload)
  return (
    <li>
      <span class="upload-name" title={path}>
        {path}
      </span>
      <progress aria-label={name} max={Math.max(size, 1)} value={sent} />
      <span class={state === "failed" ? "problem upload-state" : "hint upload-state"}>{wordsOf(upload)}</span>
      <span class="buttons">
        {isMoving(upload) && (
          <button
            type="button"
            class="small"
            aria-label={`Pause ${name}`}
            onClick={() => queue.pause(upload)}
          >
            Pause
          </button>
        )}
        {(state === "paused" || state === "failed") && (
          <button
            type="button"
            class="small"
            aria-label={`${state === "failed" ? "Try" : "Go on with"} ${name}`}
            onClick={() => queue.resume(upload)}
          >
            {state === "failed" ? "Try again" : "Go on"}
          </button>
        )}
        <button
          type="button"
          class="small"
          aria-label={`Cancel ${name}`}
          onClick={() => queue.cancel(upload)}
        >
          Cancel
        </button>
      </span>
    </li>
  )
}

const wordsOf = ({ problem, sent, size, state }: Upload): string => {
  const part = size === 0 ? "" : formatShare(sent / size)
  switch (state) {
    case "waiting":
      return sent > 0 ? `${part} · waiting` : "waiting"
    case "sending":
      return `${part} of ${formatBytes(size)}`
    case "held":
      return `${part} · ${problem ?? "waiting"}, goes on by itself`
    case "paused":
      return `${part} · paused`
    case "missing":
      return sent > 0 ? `${part} is there, choose it again` : "choose it again"
    case "failed":
      return problem ?? "refused"
    case "done":
      return "done"
  }
}
