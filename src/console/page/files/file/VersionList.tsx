import { formatCounted } from "../../figures/Format.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { formatBytes, formatWhen } from "../Words.ts"
import type { FileVersion, History } from "./History.ts"

interface VersionListProps {
  readonly history: History
  onChanged(): void
}

/** All versions of a file: each can be had, brought back, or deleted for good. */
export const VersionList = ({ history: { versions }, onChanged }: VersionListProps) => (
  <section class="items" aria-labelledby="versions-title">
    <h2 id="versions-title">
      {versions.length === 1 ? "1 version" : formatCounted(versions.length, "version")}
    </h2>
    <ul aria-labelledby="versions-title">
      {versions.map((version) => (
        <li key={version.id}>
          <Words version={version} />
          <span class="buttons">
            <a
              class="button-link small"
              href={`/api/files/${version.id}?download=1`}
              aria-label={`Download version ${version.version}`}
              download
            >
              Download
            </a>
            {!version.isCurrent && <OldActions version={version} onChanged={onChanged} />}
          </span>
        </li>
      ))}
    </ul>
  </section>
)

const Words = ({ version: one }: { readonly version: FileVersion }) => (
  <span class="item-words">
    <strong>
      Version {one.version}
      {one.isCurrent && " (current)"}
    </strong>{" "}
    <span class="hint">
      {formatBytes(one.fileSize)} · <time dateTime={one.createdAt}>{formatWhen(one.createdAt)}</time>
    </span>
  </span>
)

interface OldActionsProps {
  readonly version: FileVersion
  onChanged(): void
}

const OldActions = ({ onChanged, version: { id, version } }: OldActionsProps) => (
  <>
    <Dialog
      action="Restore"
      question={`Version ${version} becomes the current one, as a new version. Nothing is lost.`}
      yes="Restore it"
      no="Leave it"
      run={async (ask) => {
        await ask(`/api/files/${id}/restore`, { method: "POST" })
        onChanged()
      }}
    />
    <Dialog
      action="Delete"
      question={`Version ${version} is deleted for good.`}
      yes="Delete it"
      run={async (ask) => {
        await ask(`/api/files/${id}/versions/${id}`, { method: "DELETE" })
        onChanged()
      }}
    />
  </>
)
