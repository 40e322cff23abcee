import { useState } from "preact/hooks"
import { ViewLink } from "../../view/Navigation.tsx"
import { More, useDirectories } from "../Pages.tsx"
import { directoryView, rootView } from "../Places.ts"
import type { Directory } from "../Types.ts"

interface TreeProps {
  /** of the directory that is open */
  readonly path: string
  /** counts up with changes */
  readonly since: number
}

const refreshMillis = 60_000
const pageSize = 500

/** All directories, opened down to the present one. */
export const Tree = ({ path, since }: TreeProps) => (
  <nav class="tree" aria-label="Directories">
    <ViewLink to={rootView} isCurrent={path === ""}>
      All files
    </ViewLink>
    <Branch id="root" name="your files" path={path} since={since} />
  </nav>
)

interface BranchProps extends TreeProps {
  readonly id: string
  readonly name: string
}

const Branch = ({ id, name, path, since }: BranchProps) => {
  const { directories = [], ...rest } = useDirectories(id, pageSize, refreshMillis, { since })
  if (directories.length === 0) return null
  return (
    <>
      <ul>
        {directories.map((directory) => (
          <Node key={directory.id} directory={directory} path={path} since={since} />
        ))}
      </ul>
      <More {...rest} of={`directories in ${name}`} />
    </>
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
      {isOpen && <Branch id={directory.id} name={directory.name} path={path} since={since} />}
    </li>
  )
}
