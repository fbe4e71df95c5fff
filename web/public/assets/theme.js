// The theme that was chosen, before anything is painted. `src/shell/theme.ts` changes it afterwards.
(function () {
  var chosen = null;
  try {
    chosen = localStorage.getItem("tolka.theme");
  } catch (_) {}
  var dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
})();
