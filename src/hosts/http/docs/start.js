/** Swagger UI has a dark form for html.dark-mode; the page follows the browser's scheme. */
const scheme = matchMedia("(prefers-color-scheme: dark)")
const follow = () => document.documentElement.classList.toggle("dark-mode", scheme.matches)
follow()
scheme.addEventListener("change", follow)

/** The document's rules, each chapter folded: a reader opens what concerns the request at hand. */
const folded = (description) => {
  const [lead, ...chapters] = description.split(/^## /m)
  const folds = chapters.map((chapter) => {
    const [title, ...text] = chapter.split("\n")
    return `<details><summary>${title}</summary>\n\n${text.join("\n")}\n\n</details>`
  })
  const use =
    "To send a request: press **Authorize**, enter an API key, open an operation below, and press **Try it out**."
  return [lead, use, ...folds].join("\n\n")
}

const some = (count) => `${count} operation${count === 1 ? "" : "s"}`

/** Operations by the name of their group. */
const grouped = ({ paths }) =>
  Map.groupBy(Object.values(paths).flatMap(Object.values), ({ tags: [group] }) => group)

/** Components of Swagger UI that a screen reader can use; `title`: the heading of the operations. */
const accessible =
  (title) =>
  ({ React: { createElement } }) => ({
    wrapComponents: {
      InfoContainer: (Original) => (props) =>
        createElement("section", { "aria-label": "Introduction" }, createElement(Original, props)),
      operations: (Original) => (props) =>
        createElement("div", null, createElement("h2", null, title), createElement(Original, props)),
      TextArea: (Original) => (props) => createElement(Original, { "aria-label": "Body", ...props }),
      // One server, this one.
      ServersContainer: () => () => null,
      // A link inside of the button that opens the operation; the button changes the address as well.
      DeepLink:
        () =>
        ({ text }) =>
          createElement("span", null, text)
    }
  })

const show = (spec) => {
  const groups = grouped(spec)
  const all = [...groups.values()].flat().length
  SwaggerUIBundle({
    spec: {
      ...spec,
      info: { ...spec.info, description: folded(spec.info.description) },
      tags: spec.tags.map(({ description, name }) => ({
        name,
        description: `${description} ${some(groups.get(name)?.length ?? 0)}.`
      }))
    },
    url: new URL("openapi.json", document.baseURI).href,
    dom_id: "#reference",
    validatorUrl: null,
    deepLinking: true,
    docExpansion: "none",
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    persistAuthorization: false,
    plugins: [accessible(`${some(all)} in ${groups.size} groups`)]
  })
}

/** Makes what Swagger UI adds usable without a mouse: code blocks scroll by keys, tables of answers have names. */
new MutationObserver(() => {
  for (const block of document.querySelectorAll("pre.microlight:not([tabindex])")) block.tabIndex = 0
  for (const table of document.querySelectorAll("table.responses-table:not([aria-label])"))
    table.setAttribute("aria-label", `${table.id.replaceAll("_", " ")} ${table.className}`)
}).observe(document.documentElement, { childList: true, subtree: true })

fetch("openapi.json")
  .then((response) => response.json())
  .then(show)
