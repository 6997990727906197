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

// What opens folded code or a folded output has its title in it, which MyST-NB hides from
// those who cannot see it behind a name that is the same for all.
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("article details.hide > summary")) {
    button.removeAttribute("aria-label");
  }
});

// A formula is a picture to the browser, which may put the full stop behind it on the
// next line.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll("article span.math")) {
    const behind = formula.nextSibling;
    const stop = behind?.nodeType === Node.TEXT_NODE && behind.data.match(/^[.,;:?!)’]+/);
    if (!stop) continue;
    behind.splitText(stop[0].length);
    const together = document.createElement("span");
    together.style.whiteSpace = "nowrap";
    formula.replaceWith(together);
    together.append(formula, behind);
  }
});

// A figure opens alone at a click, where a phone can enlarge it.
document.addEventListener("DOMContentLoaded", () => {
  for (const picture of document.querySelectorAll("article div.cell_output img")) {
    const link = document.createElement("a");
    link.className = "enlarge";
    link.href = picture.src;
    picture.replaceWith(link);
    link.append(picture);
  }
});
