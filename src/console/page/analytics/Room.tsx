import type { SiteList } from "#schemas/analytics/Site.ts"
import type { Room, RoomPage } from "../view/Rooms.ts"
import { useNavigation } from "../view/Navigation.tsx"
import { OwnSites } from "./OwnSites.tsx"
import { SharedSite } from "./SharedSite.tsx"
import { siteParams, siteView } from "./SiteParams.ts"
import "./Sites.css"
import "./Live.css"
import "./Panels.css"

const Shared: RoomPage["Shared"] = ({ onAsk, otherwise }) => {
  const { site } = useNavigation().view.params
  return site === undefined ? <>{otherwise}</> : <SharedSite key={site} id={site} {...{ otherwise, onAsk }} />
}

export const room: Room = {
  name: "analytics",
  tile: {
    order: 4,
    title: "Analytics",
    purpose: "events and figures",
    components: ["analytics", "log", "clickhouse"]
  },
  page: {
    path: "",
    title: "Sites",
    order: 1,
    params: siteParams,
    item: "site",
    Page: OwnSites,
    Shared,
    probe: {
      path: "/api/v1/sites",
      // An owner of one site begins there.
      landing: ({ sites: [only, ...others] }: typeof SiteList.Encoded, { params }) =>
        params.site === undefined && only !== undefined && others.length === 0 ? siteView(only.id) : undefined
    }
  }
}
