import { useState } from "preact/hooks"
import { useAnswer } from "../../api/UseAnswer.ts"
import { ViewLink } from "../../view/Navigation.tsx"
import { directoryView, rootView } from "../Places.ts"
import type { Directory, Listing } from "../Types.ts"

interface TreeProps {
  /** of the directory that is open */
  readonly path: string
  /** counts up with changes */
  readonly since: number
}

const refreshMillis = 60_000

/** All directories, opened down to the present one. */
export const Tree = ({ path, since }: TreeProps) => (
  <nav class="tree" aria-label="Directories">
    <ViewLink to={rootView} isCurrent={path === ""}>
      All files
    </ViewLink>
    <Branch id="root" path={path} since={since} />
  </nav>
)

const Branch = ({ id, path, since }: TreeProps & { readonly id: string }) => {
  const { data } = useAnswer<Listing>(`/api/directories/${id}?limit=500`, refreshMillis, { since })
  if (data === undefined || data.directories.length === 0) return null
  return (
    <ul>
      {data.directories.map((directory) => (
        <Node key={directory.id} directory={directory} path={path} since={since} />
      ))}
    </ul>
  )
}

const Node = ({ directory, path, since }: TreeProps & { readonly directory: Directory }) => {
  const isOnWay = path === directory.path || path.startsWith(`${directory.path}/`)
  const [isChosen, setChosen] = useState<boolean>()
  const isOpen = isChosen ?? isOnWay
  return (
    <li>
      <span class="tree-node">
        <button
          type="button"
          class="tree-fold"
          aria-expanded={isOpen}
          aria-label={`Directories in ${directory.name}`}
          onClick={() => setChosen(!isOpen)}
        >
          {isOpen ? "▾" : "▸"}
        </button>
        <ViewLink to={directoryView(directory.path)} isCurrent={path === directory.path}>
          <bdi>{directory.name}</bdi>
        </ViewLink>
      </span>
      {isOpen && <Branch id={directory.id} path={path} since={since} />}
    </li>
  )
}
