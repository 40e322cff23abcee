import { render } from "preact"
import { App } from "./App.tsx"
import { NavigationProvider } from "./view/Navigation.tsx"

const root = document.getElementById("page")
if (root === null) throw new Error("index.html has no #page")

render(
  <NavigationProvider>
    <App />
  </NavigationProvider>,
  root
)
