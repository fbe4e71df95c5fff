/** Where the page stands: the server says it in `<base>`, so that a path prefix of a proxy is no concern of anybody else. */
const root = new URL(typeof document === "undefined" ? "http://localhost/" : document.baseURI);

/** The address of something below the page's root: `v1/sessions`, `s/ses_1`. */
export function address(path: string): string {
  return new URL(path, root).href;
}

/** The path below the page's root that a location names, without a slash before it. */
export function below(location: { pathname: string }): string {
  const path = location.pathname;
  return path.startsWith(root.pathname) ? path.slice(root.pathname.length) : path.replace(/^\//, "");
}
