import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Asking } from "../../parts/Asking.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { Toast } from "../../parts/Toast.tsx"
import { useChange } from "../../parts/UseChange.ts"
import { ViewLink } from "../../view/Navigation.tsx"
import { rootView } from "../Places.ts"
import type { Directory } from "../Types.ts"
import type { Choice } from "../uploads/Chosen.ts"
import { ChooseFiles } from "../uploads/ChooseFiles.tsx"
import { DropZone } from "../uploads/DropZone.tsx"
import type { UploadQueue } from "../uploads/UploadQueue.ts"
import { makeEmpty, placesOf } from "../uploads/Placing.ts"
import { Breadcrumbs } from "./Breadcrumbs.tsx"
import { EntryActions } from "./EntryActions.tsx"
import { Listing } from "./Listing.tsx"
import { NewDirectory } from "./NewDirectory.tsx"
import { Notice, type Noticed } from "./Notice.tsx"
import { Tree } from "./Tree.tsx"
import { useCount } from "../../parts/UseCount.ts"

interface DirectoryViewProps {
  /** `bucket/a/b`; empty: the root */
  readonly path: string
  readonly queue: UploadQueue | undefined
  /** counts up when uploads are done */
  readonly finished: number
}

const isUnknown = ({ status }: { readonly status: number }): boolean => status === 404 || status === 403

/** A directory by its path: the tree, what is in it, and what can be done there. */
export const DirectoryView = ({ finished, path, queue }: DirectoryViewProps) => {
  const [changes, onChanged] = useCount()
  const [noticed, setNoticed] = useState<Noticed>()
  const { data, isOld, refused } = useAnswer<{ readonly directories: ReadonlyArray<Directory> }>(
    path === "" ? undefined : `/api/directories?path=${encodeURIComponent(path)}`,
    undefined,
    { since: changes, isExpected: isUnknown }
  )
  const directory = path === "" || isOld ? undefined : data?.directories.at(-1)
  if (path !== "" && refused !== undefined && isUnknown(refused)) return <UnknownDirectory path={path} />
  return (
    <div class="files-split">
      <Tree path={path} since={changes + finished} />
      {path !== "" && directory === undefined ? (
        <Asking what="the directory" isRefused={refused !== undefined} />
      ) : (
        <Opened
          key={path}
          {...{ directory, path, queue, onChanged }}
          noticed={noticed?.at === path ? noticed : undefined}
          onNotice={(one) => setNoticed(one && { at: path, ...one })}
          since={changes * 1_000_000 + finished}
        />
      )}
    </div>
  )
}

const UnknownDirectory = ({ path }: { readonly path: string }) => (
  <section class="narrow">
    <h1>No such directory</h1>
    <p>Nothing is at {path}. It may have been moved, renamed or deleted.</p>
    <p>
      <ViewLink to={rootView}>All files</ViewLink>
    </p>
  </section>
)

interface OpenedProps {
  readonly directory: Directory | undefined
  readonly path: string
  readonly queue: UploadQueue | undefined
  readonly since: number
  readonly noticed: Noticed | undefined
  onNotice(noticed: Noticed | undefined): void
  onChanged(): void
}

const Opened = ({ directory, noticed, onChanged, onNotice, path, queue, since }: OpenedProps) => {
  const change = useChange()
  const onChosen = (choice: Choice): void => {
    if (queue === undefined) return
    const { places, note } = placesOf(choice, directory)
    queue.add(places)
    onNotice(note === undefined ? undefined : { text: note, isProblem: true })
    if (choice.emptyDirectories.length > 0)
      void change.run((ask) => makeEmpty(ask, choice, directory)).then(onChanged)
  }
  return (
    <div class="files-main">
      <Breadcrumbs path={path} />
      <div class="files-head">
        <Heading tab={directory?.name ?? "Files"}>{directory?.name ?? "Files"}</Heading>
        {directory !== undefined && (
          <EntryActions
            entry={{ kind: "directory", of: directory }}
            sign="Actions"
            isOpen
            onChanged={onChanged}
            onNotice={onNotice}
          />
        )}
      </div>
      <div class="buttons files-actions">
        <ChooseFiles files="Upload files" folder="Upload a folder" onChosen={onChosen} />
        <NewDirectory parent={directory} onMade={onChanged} />
      </div>
      <Notice noticed={noticed} onUndone={onChanged} />
      <Toast>{change.problem}</Toast>
      <DropZone to={directory?.name ?? "your files"} onChosen={onChosen}>
        <Listing directory={directory} since={since} onChanged={onChanged} onNotice={onNotice} />
      </DropZone>
    </div>
  )
}
