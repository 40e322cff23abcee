import { useState } from "preact/hooks"
import { Heading } from "../parts/Heading.tsx"
import { useNavigation, ViewLink } from "../view/Navigation.tsx"
import type { Room } from "../view/Rooms.ts"
import { DirectoryView } from "./browse/DirectoryView.tsx"
import { SearchView } from "./browse/SearchView.tsx"
import { Devices } from "./devices/Devices.tsx"
import { FileView } from "./file/FileView.tsx"
import {
  isSection,
  path as roomPath,
  rootView,
  searchView,
  type Section,
  sections,
  sectionView
} from "./Places.ts"
import { LinkList } from "./share/LinkList.tsx"
import { Trash } from "./trash/Trash.tsx"
import { useStrayDrops } from "./uploads/DropZone.tsx"
import { UploadPanel } from "./uploads/UploadPanel.tsx"
import { useFinished, useUploads } from "./uploads/UseUploads.ts"
import { Usage } from "./Usage.tsx"
import "./Files.css"
import "./browse/Browse.css"
import "./file/File.css"
import "./share/Share.css"
import "./uploads/Uploads.css"

/** Shared files: the tree, one file, a search, or a page beside them. Uploads are shown above whatever is open. */
const Files = () => {
  const { params } = useNavigation().view
  const { queue, uploads } = useUploads()
  const finished = useFinished(uploads)
  useStrayDrops()
  const { file, path = "", q, show } = params
  return (
    <div class="files">
      <Bar params={params} />
      {queue !== undefined && <UploadPanel queue={queue} uploads={uploads} />}
      {isSection(show) ? (
        <Beside section={show} />
      ) : q !== undefined ? (
        <SearchView words={q} />
      ) : file !== undefined ? (
        <FileView key={file} id={file} finished={finished} />
      ) : (
        <DirectoryView path={path} queue={queue} finished={finished} />
      )}
      <Usage since={finished} />
    </div>
  )
}

const Beside = ({ section }: { readonly section: Section }) => {
  switch (section) {
    case "devices":
      return <Devices />
    case "links":
      return (
        <section>
          <Heading>Links</Heading>
          <LinkList title="All links" />
        </section>
      )
    case "trash":
      return <Trash />
  }
}

const Bar = ({ params }: { readonly params: Readonly<Record<string, string>> }) => {
  const { show } = params
  return (
    <div class="files-bar">
      <nav class="tabs" aria-label="Parts of this room">
        <ViewLink to={rootView} isCurrent={!isSection(show)}>
          Files
        </ViewLink>
        {(Object.keys(sections) as Array<Section>).map((section) => (
          <ViewLink key={section} to={sectionView(section)} isCurrent={show === section}>
            {sections[section]}
          </ViewLink>
        ))}
      </nav>
      <Search key={params["q"]} words={params["q"] ?? ""} />
    </div>
  )
}

const Search = ({ words: given }: { readonly words: string }) => {
  const { go } = useNavigation()
  const [words, setWords] = useState(given)
  const onSubmit = (event: Event): void => {
    event.preventDefault()
    go(words.trim() === "" ? rootView : searchView(words.trim()))
  }
  return (
    <form class="files-search" role="search" onSubmit={onSubmit}>
      <input
        type="search"
        aria-label="Search by name"
        placeholder="Search by name"
        value={words}
        onInput={({ currentTarget }) => setWords(currentTarget.value)}
      />
      <button type="submit">Search</button>
    </form>
  )
}

export const room: Room = {
  name: "files",
  tile: { order: 6, title: "Files", purpose: "shared files", components: ["postgres"] },
  page: {
    path: roomPath,
    title: "Files",
    order: 5,
    params: ["path", "file", "q", "show"],
    item: "path",
    Page: Files,
    probe: { path: "/api/directories/root?limit=1" }
  }
}
