"""The pages of :mod:`nuptse.report`: first the numbers, then charts and tables of them, then the page."""
