// A page that was opened from a disk may not fetch others: search lists what it finds
// without quoting it, and nobody needs the copy that is already there.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  document.documentElement.classList.add("offline");
}

// In the contents, chapters with pages below them get an arrow, which the theme leaves
// without a name for those who cannot see it.
document.addEventListener("DOMContentLoaded", () => {
  for (const arrow of document.querySelectorAll("nav li > details > summary")) {
    const chapter = arrow.closest("li").querySelector("a").textContent;
    arrow.setAttribute("aria-label", `Pages of ${chapter}`);
  }
});
