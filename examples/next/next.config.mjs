/** castellan loads modules and native bindings on demand, which a bundle cannot do. */
export default { serverExternalPackages: ["castellan"] }
