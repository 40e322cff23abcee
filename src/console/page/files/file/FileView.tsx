import { useEffect, useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { Breadcrumbs } from "../browse/Breadcrumbs.tsx"
import { EntryActions } from "../browse/EntryActions.tsx"
import { Notice, type Noticed } from "../browse/Notice.tsx"
import { Asking } from "../../parts/Asking.tsx"
import { Heading } from "../../parts/Heading.tsx"
import { useNavigation, ViewLink } from "../../view/Navigation.tsx"
import { LinkList } from "../share/LinkList.tsx"
import { fileView, parentOf, rootView } from "../Places.ts"
import type { Entry } from "../Types.ts"
import { formatBytes, formatWhen } from "../Words.ts"
import { fileOf, type History } from "./History.ts"
import { Preview } from "./Preview.tsx"
import { VersionList } from "./VersionList.tsx"
import { useCount } from "../../parts/UseCount.ts"

interface FileViewProps {
  /** of the file, or of a version */
  readonly id: string
  /** counts up when uploads are done */
  readonly finished: number
}

const refreshMillis = 30_000

const isUnknown = ({ status }: { readonly status: number }): boolean => status === 404

/** One file: how it looks, its versions, its links, and what can be done with it. */
export const FileView = ({ finished, id }: FileViewProps) => {
  const [changes, onChanged] = useCount()
  const [noticed, setNoticed] = useState<Noticed>()
  const since = changes * 1_000_000 + finished
  const { data, refused } = useAnswer<History>(
    `/api/files/${encodeURIComponent(id)}/versions`,
    refreshMillis,
    { since, isExpected: isUnknown }
  )
  const { go } = useNavigation()
  const groupId = data?.versionGroupId
  useEffect(() => {
    // A version can be deleted while its file is open.
    if (groupId !== undefined && groupId !== id) go(fileView(groupId), true)
  }, [go, groupId, id])
  if (refused !== undefined && isUnknown(refused))
    return <UnknownFile noticed={noticed} onUndone={onChanged} />
  const file = data === undefined ? undefined : fileOf(data)
  // Under the id of the file the view begins anew: what is shown before would vanish and come again.
  if (data === undefined || file === undefined || groupId !== id)
    return <Asking what="the file" isRefused={refused !== undefined} />
  const entry: Entry = { kind: "file", of: file }
  return (
    <div class="file-view">
      <Breadcrumbs path={parentOf(file.path)} isWhole />
      <div class="files-head">
        <Heading>{file.name}</Heading>
        <div class="buttons">
          <a class="button-link" href={`/api/files/${file.id}?download=1`} download>
            Download
          </a>
          <EntryActions entry={entry} sign="Actions" onChanged={onChanged} onNotice={setNoticed} />
        </div>
      </div>
      <p class="hint">
        {formatBytes(file.fileSize)} · {file.mimeType} · version {file.version} · changed{" "}
        <time dateTime={file.modifiedAt}>{formatWhen(file.modifiedAt)}</time>
      </p>
      <Notice noticed={noticed} onUndone={onChanged} />
      <div class="file-preview">
        <Preview
          key={file.id}
          id={file.id}
          name={file.name}
          mimeType={file.mimeType}
          size={file.fileSize}
          isEncrypted={file.isEncrypted}
        />
      </div>
      <VersionList history={data} onChanged={onChanged} />
      <LinkList title="Links to this file" of={entry} since={changes} />
    </div>
  )
}

const UnknownFile = (props: { readonly noticed: Noticed | undefined; onUndone(): void }) => (
  <section class="narrow">
    <h1>No such file</h1>
    <Notice {...props} />
    <p>It is in the trash, or was deleted for good, or its link is wrong.</p>
    <p>
      <ViewLink to={rootView}>All files</ViewLink>
    </p>
  </section>
)
