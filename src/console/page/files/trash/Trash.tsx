import { useRef, useState } from "preact/hooks"
import { Refused } from "../../api/Refused.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Dialog } from "../../parts/Dialog.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Toast } from "../../parts/Toast.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { useFocusLeft } from "../../parts/UseFocusLeft.ts"
import { More, usePages } from "../Pages.tsx"
import { parentOf } from "../Places.ts"
import { formatBytes, formatWhen } from "../Words.ts"
import { useCount } from "../../parts/UseCount.ts"
import { restore } from "./TrashApi.ts"

const path = "/api/trash"

/** A deleted file or directory, as the API answers it. */
interface Trashed {
  readonly id: string
  readonly kind: "file" | "directory"
  readonly itemId: string
  readonly name: string
  readonly path: string
  readonly size: number
  readonly trashedAt: string
  readonly expiresAt: string
}

const refreshMillis = 30_000

/** Deleted files and directories, until they go for good. */
export const Trash = () => {
  const [since, onChanged] = useCount()
  const { pages, refused, ...rest } = usePages<{
    readonly items: ReadonlyArray<Trashed>
    readonly cursor: string | null
  }>(`${path}?limit=200`, refreshMillis, { since })
  const items = pages?.flatMap((page) => page.items)
  return (
    <section class="trash">
      <div class="files-head">
        <Heading>Trash</Heading>
        {items !== undefined && items.length > 0 && (
          <Dialog
            action="Empty the trash"
            question="Everything in it is deleted for good, with all versions and links."
            yes="Delete it all"
            run={async (ask) => {
              await ask(path, { method: "DELETE" })
              onChanged()
            }}
          />
        )}
      </div>
      {items === undefined && <Asking what="the trash" isRefused={refused !== undefined} />}
      {items?.length === 0 && (
        <p class="hint">
          Nothing is in the trash. What you delete stays here for a while and can be restored.
        </p>
      )}
      <div class="items">
        <ul aria-label="Trash">
          {items?.map((item) => (
            <Row key={item.id} item={item} onChanged={onChanged} />
          ))}
        </ul>
      </div>
      <More {...rest} of="of the trash" />
    </section>
  )
}

const Row = ({ item, onChanged }: { readonly item: Trashed; onChanged(): void }) => {
  const change = useChange()
  const [isTaken, setTaken] = useState(false)
  const row = useRef<HTMLLIElement>(null)
  useFocusLeft(row)
  const { expiresAt, id, kind, name, path: was, size, trashedAt } = item
  const bringBack = (): void =>
    void change.run(async (ask) => {
      try {
        await restore(ask, item, isTaken)
      } catch (error) {
        if (error instanceof Refused && error.status === 409) setTaken(true)
        throw error
      }
      onChanged()
    })
  return (
    <li ref={row}>
      <span class="item-words">
        <strong>
          <bdi>{name}</bdi>
        </strong>{" "}
        <span class="hint">
          {kind} in {parentOf(was) === "" ? "all files" : parentOf(was)} · {formatBytes(size)} · deleted{" "}
          <time dateTime={trashedAt}>{formatWhen(trashedAt)}</time>, goes for good{" "}
          <time dateTime={expiresAt}>{formatWhen(expiresAt)}</time>
        </span>
      </span>
      <span class="buttons">
        <button
          type="button"
          class="small"
          disabled={change.isBusy}
          aria-label={`Restore ${name}`}
          onClick={bringBack}
        >
          {isTaken ? "Restore under another name" : "Restore"}
        </button>
        <Dialog
          action="Delete for good"
          question={`${name} cannot be brought back.`}
          yes="Delete it"
          run={async (ask) => {
            await ask(`${path}/${id}`, { method: "DELETE" })
            onChanged()
          }}
        />
      </span>
      <Toast>{change.problem}</Toast>
    </li>
  )
}
