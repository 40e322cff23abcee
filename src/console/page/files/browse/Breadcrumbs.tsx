import { ViewLink } from "../../view/Navigation.tsx"
import { directoryView, rootView } from "../Places.ts"

interface BreadcrumbsProps {
  /** of the directory that is open, or that the open file is in */
  readonly path: string
  /** the last name is a link as well */
  readonly isWhole?: boolean
}

/** The way from the root to where one is. */
export const Breadcrumbs = ({ isWhole = false, path }: BreadcrumbsProps) => {
  const names = path === "" ? [] : path.split("/")
  const linked = isWhole ? names : names.slice(0, -1)
  if (names.length === 0) return null
  return (
    <nav class="breadcrumbs" aria-label="Path">
      <ol>
        <li>
          <ViewLink to={rootView}>All files</ViewLink>
        </li>
        {linked.map((name, index) => (
          <li key={index}>
            <ViewLink to={directoryView(names.slice(0, index + 1).join("/"))}>
              <bdi>{name}</bdi>
            </ViewLink>
          </li>
        ))}
      </ol>
    </nav>
  )
}
