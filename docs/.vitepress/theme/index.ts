import { useRoute } from "vitepress"
import theme from "vitepress/theme-without-fonts"
import { defineComponent, h, nextTick, onMounted, watch } from "vue"
import { terminal } from "./Terminal.js"
import "./site.css"

/** VitePress gives its home page no main landmark, and code blocks that scroll no focus. */
const complete = () => {
  document.querySelector(".VPHome")?.setAttribute("role", "main")
  // Its label leaves out the visible keys.
  const search = document.querySelector(".DocSearch")
  search?.setAttribute("aria-label", search.textContent?.trim() ?? "Search")
  for (const block of document.querySelectorAll(".vp-doc pre, .picture")) block.setAttribute("tabindex", "0")
}

const Layout = defineComponent(() => {
  const route = useRoute()
  onMounted(complete)
  watch(
    () => route.path,
    () => nextTick(complete)
  )
  return () => h(theme.Layout, null, { "home-hero-image": terminal })
})

export default { extends: theme, Layout }
