/** The style of the documentation page. Text and background differ by at least 7:1 in both schemes. */
export const style = `
:root { color-scheme: light dark; --text: #1b1f24; --back: #ffffff; --soft: #f3f4f6; --line: #c9ced6; --link: #0b4a8f; --mark: #5b2a00; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e8eaed; --back: #14171b; --soft: #1f242a; --line: #424a54; --link: #9cc7ff; --mark: #ffcf9e; }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--back); font: 1rem/1.55 system-ui, sans-serif; }
header, main, nav { padding: 1rem 1.5rem; }
header { border-bottom: 1px solid var(--line); }
h1, h2, h3 { line-height: 1.25; }
h2 { margin-top: 2.5rem; text-transform: capitalize; border-bottom: 1px solid var(--line); }
a { color: var(--link); }
a:focus-visible, pre:focus-visible, .scroll:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; padding: .5rem 1rem; background: var(--back); }
.skip:focus { left: 0; }
.method { color: var(--mark); font-size: .8em; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { padding: .8rem 1rem; overflow-x: auto; background: var(--soft); border: 1px solid var(--line); }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border: 1px solid var(--line); }
thead th { background: var(--soft); }
tbody th { font-weight: normal; }
nav ul { list-style: none; padding-left: 1rem; margin: .2rem 0; }
@media (min-width: 60rem) {
  .columns { display: grid; grid-template-columns: 18rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; }
}
`
