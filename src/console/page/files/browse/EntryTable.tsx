import { ViewLink } from "../../view/Navigation.tsx"
import { directoryView, fileView, parentOf } from "../Places.ts"
import type { Entry } from "../Types.ts"
import { formatBytes, formatWhen } from "../Words.ts"
import { EntryActions } from "./EntryActions.tsx"
import type { Noticed } from "./Notice.tsx"

interface EntryTableProps {
  readonly entries: ReadonlyArray<Entry>
  /** shows the directory of each: they are from several */
  readonly hasPlaces?: boolean
  onChanged(): void
  onNotice(noticed: Noticed): void
}

/** Directories and files, each with its actions. */
export const EntryTable = ({ entries, hasPlaces = false, onChanged, onNotice }: EntryTableProps) => (
  <table class="entries">
    <thead>
      <tr class="hint">
        <th scope="col">Name</th>
        <th scope="col" class="entry-size">
          Size
        </th>
        <th scope="col" class="entry-changed">
          Changed
        </th>
        <th scope="col" class="entry-version">
          Version
        </th>
        <th scope="col">
          <span class="unseen">Actions</span>
        </th>
      </tr>
    </thead>
    <tbody>
      {entries.map((entry) => (
        <tr key={entry.of.id}>
          <th scope="row">
            <EntryName entry={entry} />
            {hasPlaces && <span class="hint entry-place">{parentOf(entry.of.path)}</span>}
          </th>
          <td class="entry-size">{entry.kind === "file" ? formatBytes(entry.of.fileSize) : ""}</td>
          <td class="entry-changed">
            <time dateTime={entry.of.modifiedAt}>{formatWhen(entry.of.modifiedAt)}</time>
          </td>
          <td class="entry-version">{entry.kind === "file" ? entry.of.version : ""}</td>
          <td class="entry-actions">
            <EntryActions entry={entry} onChanged={onChanged} onNotice={onNotice} />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
)

const EntryName = ({ entry: { kind, of } }: { readonly entry: Entry }) => (
  <ViewLink
    to={kind === "file" ? fileView(of.versionGroupId) : directoryView(of.path)}
    class={`entry-name ${kind}`}
  >
    <span class="unseen">{kind === "file" ? "File " : "Directory "}</span>
    <span>{of.name}</span>
  </ViewLink>
)
