/** Castellan loads what it needs when it needs it, native bindings among it: Node does that, a bundle cannot. */
export default { serverExternalPackages: ["castellan"] }
